//! Sliding window: an endless stream of records, each a workflow of its own, with a constant number
//! of them in flight: when one ends, the next starts. The run fetches page after page, and
//! continues as new before its history grows too long.

use abide::{embedded::Embedded, prelude::*};
use serde::{Deserialize, Serialize};

/// Number of children in flight at the same time.
const WINDOW: usize = 5;

/// Number of pages per run; in production, ask `ctx.suggests_continue_as_new()`.
const PAGES_PER_RUN: u32 = 2;

/// Position and totals.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Position {
    page: u32,
    done: u32,
    failed: u32,
    runs: u32,
}

/// Stands for a source in another system: six pages of ten records.
#[activity]
async fn fetch_page(page: u32) -> Vec<u32> {
    let first = page * 10 + 1;
    if page < 6 { (first..first + 10).collect() } else { Vec::new() }
}

/// Handles one record. A child, because it may take days and can be inspected on its own.
#[workflow]
async fn record(ctx: &Context, number: u32) -> abide::Result<()> {
    ctx.sleep(std::time::Duration::from_millis(5)).await?;
    match number % 25 {
        0 => Err(Error::new("damaged")),
        _ => Ok(()),
    }
}

#[workflow]
async fn records(ctx: &Context, position: Position) -> abide::Result<String> {
    let mut position = position;
    position.runs += 1;
    let mut window = Window::new(WINDOW);
    let mut more = true;
    for _ in 0..PAGES_PER_RUN {
        let records = ctx.activity(fetch_page, position.page).await?;
        more = !records.is_empty();
        for record in records {
            let id = format!("{}/{record}", ctx.workflow_id());
            // Waits only if the window is full: then for the next one to end.
            let ended = window.push(record::child(ctx, id, record)).await;
            position.count(ended)?;
        }
        position.page += 1;
    }
    // Nothing may be in flight when the run ends or continues as new.
    while let Some(ended) = window.next().await {
        position.count(Some(ended))?;
    }
    if more { Err(ctx.continue_as_new(position)) } else { Ok(position.report()) }
}

impl Position {
    fn count(&mut self, ended: Option<abide::Result<()>>) -> abide::Result<()> {
        match ended {
            None => {}
            Some(Ok(())) => self.done += 1,
            Some(Err(Error::Child(_))) => self.failed += 1,
            Some(Err(error)) => return Err(error),
        }
        Ok(())
    }

    fn report(&self) -> String {
        format!("{} records done, {} failed, in {} runs", self.done, self.failed, self.runs)
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    let worker = engine.worker().workflow::<records>().workflow::<record>();
    worker.activity(fetch_page).spawn();

    let records = records::start(&engine.client(), "records", Position::default()).await?;
    println!("{}", records.result().await?);
    Ok(())
}
