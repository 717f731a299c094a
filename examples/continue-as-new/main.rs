//! Continue as new: a run that lives forever drops its history again and again. Its id stays, and
//! what must be remembered is the input of the next run.

use abide::{embedded::Embedded, list::RunFilter, prelude::*};
use serde::{Deserialize, Serialize};

/// Carried from run to run.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Sofar {
    visitors: u32,
    runs: u32,
}

#[derive(Default)]
struct Counter {
    sofar: Sofar,
}

#[workflow]
impl Counter {
    #[init]
    fn new(sofar: &Sofar) -> Self {
        Self { sofar: sofar.clone() }
    }

    #[run]
    async fn run(ctx: &Context<Self>, _sofar: Sofar) -> abide::Result<Sofar> {
        ctx.write(|counter| counter.sofar.runs += 1);
        loop {
            let signal = ctx.receive_any().await?;
            if signal.read(Self::VISITOR).is_some() {
                ctx.write(|counter| counter.sofar.visitors += 1);
            } else if signal.read(Self::CLOSE).is_some() {
                return Ok(ctx.read(|counter| counter.sofar.clone()));
            }
            // The engine says when the history is long. This is a good moment: nothing is half
            // done, and this run has made progress. Unread signals carry over, in order.
            if ctx.suggests_continue_as_new() {
                return Err(ctx.continue_as_new(ctx.read(|counter| counter.sofar.clone())));
            }
        }
    }

    #[signal]
    fn visitor();

    #[signal]
    fn close();
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    // By default a history is long from 4,096 events on. This example lowers the limit to 50.
    let engine = Embedded::builder().suggest_continue_as_new_after(50).in_memory().await;
    engine.worker().workflow::<Counter>().spawn();
    let client = engine.client();

    let counter = Counter::start(&client, "museum", Sofar::default()).await?;
    for _ in 0..100 {
        counter.visitor().await?;
    }
    // The handle refers to the workflow, so it reaches the current run.
    counter.close().await?;

    // The result is that of the last run.
    let sofar = counter.result().await?;
    println!("{} visitors, counted by more than one run: {}", sofar.visitors, sofar.runs > 1);

    let runs = client.runs(RunFilter::new()).take(100).await?;
    println!("as many runs are listed: {}", runs.len() == sofar.runs as usize);
    Ok(())
}
