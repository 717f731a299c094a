//! Starts many runs that wait, and counts them.

use std::time::Duration;

use abide::{Client, list::WaitFilter};
use abide_command::Failed;
use tokio::{task::JoinSet, time::sleep};
use uuid::Uuid;

use crate::{
    report::progress,
    workflows::{QUEUE, Signalled, WaitFor, sleeper},
};

/// Runs that fill the worker's cache before anything is measured.
pub(crate) const WARM: u64 = 2_000;

/// Starts in flight at a time.
const CONCURRENCY: u64 = 256;

/// Interval between two counts of the waiting runs, and the page size of the list.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
const PAGE: usize = 1_000;

/// Starts so many runs, each with the given wait. Returns the ids of those that sleep.
pub(crate) async fn fall_asleep(
    client: &Client,
    what: &'static str,
    runs: u64,
    waiting: impl Fn(u64) -> WaitFor,
) -> Result<Vec<String>, Failed> {
    let bar = progress(what, runs);
    let mut starters = JoinSet::new();
    for starter in 0..CONCURRENCY.min(runs) {
        let (client, bar) = (client.clone(), bar.clone());
        let own = (starter..runs).step_by(usize::try_from(CONCURRENCY).unwrap_or(1));
        let own: Vec<_> = own.map(&waiting).collect();
        starters.spawn(async move {
            let mut ids = Vec::with_capacity(own.len());
            for waiting in own {
                let id = format!("wait-{}", Uuid::now_v7());
                match waiting {
                    WaitFor::Until(due) => {
                        let due = due.unix_millis();
                        sleeper::start(&client, id.clone(), due).queue(QUEUE).await?;
                        ids.push(id);
                    }
                    WaitFor::ForSignal => {
                        Signalled::start(&client, id).queue(QUEUE).await?;
                    }
                }
                bar.inc(1);
            }
            Ok::<_, Failed>(ids)
        });
    }
    let mut ids = Vec::new();
    while let Some(starter) = starters.join_next().await {
        ids.extend(starter.map_err(Failed::refused)??);
    }
    bar.finish_and_clear();
    Ok(ids)
}

/// Waits until so many waits are listed.
pub(crate) async fn all_wait(client: &Client, runs: u64) -> Result<(), Failed> {
    let bar = progress("waiting", runs);
    loop {
        let waiting = count(client, &bar).await?;
        if waiting >= runs {
            bar.finish_and_clear();
            return Ok(());
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// Counts all waits, page by page.
async fn count(client: &Client, bar: &indicatif::ProgressBar) -> Result<u64, Failed> {
    let mut filter = WaitFilter::new();
    let mut count = 0;
    loop {
        let page = client.waits_page(filter.clone(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(count) };
        filter = filter.after(last.position.clone());
        count += page.len() as u64;
        bar.set_position(count);
    }
}
