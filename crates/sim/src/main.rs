//! x
use abide_sim::{sabotage::Saboteur, trace::Trace, world::World};
fn main() {
    let first: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    let n: u64 = std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(1);
    let trace = std::env::args().nth(3).is_some();
    let begin = std::time::Instant::now();
    let mut total = abide_sim::world::Counts::default();
    let mut bad = 0;
    for seed in first..first + n {
        let r = std::panic::catch_unwind(|| {
            let mut w = World::new(seed, Saboteur::default(), Trace::new(trace));
            let r = w.run();
            if trace {
                if let Err(v) = &r {
                    let _ = v;
                    for l in w.all_trace() {
                        println!("{l}");
                    }
                }
            }
            (r, w.counts())
        });
        match r {
            Ok((r, c)) => {
                total.inputs += c.inputs;
                total.messages += c.messages;
                total.faults += c.faults;
                total.runs += c.runs;
                total.events += c.events;
                total.acknowledged += c.acknowledged;
                if let Err(v) = r {
                    bad += 1;
                    let s = v.to_string();
                    println!("seed {seed}: {}", s.chars().take(700).collect::<String>());
                }
            }
            Err(_) => {
                bad += 1;
                println!("seed {seed}: panic");
            }
        }
    }
    println!(
        "{bad} bad of {n}; {:?} {:?} per seed {:?}",
        begin.elapsed(),
        total,
        begin.elapsed() / n as u32
    );
}
