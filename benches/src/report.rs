//! Output of benchmarks: progress to stderr, a table (or JSON) to stdout.

use std::{
    fmt,
    io::{self, Write as _},
};

use crate::clients::Measured;

/// One line of the result.
pub struct Line {
    pub name: &'static str,
    /// Number of concurrent clients.
    pub clients: usize,
    pub measured: Measured,
    /// Rate relative to the named line.
    pub ratio: Option<(&'static str, f64)>,
}

pub fn progress(message: fmt::Arguments<'_>) {
    // Progress that cannot be printed is no reason to stop.
    let _ = writeln!(io::stderr(), "{message}");
}

/// The measurement with the median rate.
pub fn median(mut measured: Vec<Measured>) -> Measured {
    measured.sort_by(|left, right| left.rate().total_cmp(&right.rate()));
    measured.swap_remove(measured.len() / 2)
}

pub fn print(lines: &[Line], json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if !json {
        writeln!(out, "| what | clients | transitions/s | p50 ms | p99 ms | ratio |")?;
        writeln!(out, "|---|---|---|---|---|---|")?;
    }
    for Line { name, clients, measured, ratio } in lines {
        let rate = measured.rate();
        let (p50, p99) =
            (measured.latencies.percentile_ms(50), measured.latencies.percentile_ms(99));
        if json {
            let ratio = ratio.map_or("null".to_owned(), |(_, ratio)| format!("{ratio:.3}"));
            writeln!(
                out,
                "{{\"name\":\"{name}\",\"clients\":{clients},\"transitions_per_s\":{rate:.0},\
                 \"p50_ms\":{p50:.3},\"p99_ms\":{p99:.3},\"ratio\":{ratio}}}"
            )?;
        } else {
            let ratio = ratio.map_or(String::new(), |(of, ratio)| format!("{ratio:.2} of {of}"));
            writeln!(out, "| {name} | {clients} | {rate:.0} | {p50:.2} | {p99:.2} | {ratio} |")?;
        }
    }
    Ok(())
}
