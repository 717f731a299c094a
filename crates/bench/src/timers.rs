//! `abide bench timers`: what a million pending timers cost, and how they affect everything else.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use abide::{Client, Timestamp, prelude::days};
use abide_benches::latencies::Latencies;
use abide_command::{
    Common, Failed,
    time::{moment, system_now},
};
use clap::Args;
use tokio::time::sleep;

use crate::{
    options::at_least_one,
    place::{LocalWorker, spawn_server},
    processes::Processes,
    report::{Report, progress},
    resumed,
    session::Session,
    sleepers::{WARM, all_wait, fall_asleep},
    workflows::{WaitFor, sleeper},
};

/// Measure what many pending timers cost: memory, restart, lateness, moving one of them
#[derive(Args)]
#[command(after_help = "Example:
  abide bench timers --timers 1000000")]
pub(crate) struct Timers {
    /// How many timers are pending: half of them due within a year, half of them never
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000, value_parser = at_least_one)]
    timers: u64,
    /// How many more fall due within one second
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = at_least_one)]
    due: u64,
}

/// A small number of timers: a move beside all timers should cost no more than beside these.
const FEW: u64 = 1_000;

/// How many timers are moved, one after another.
const MOVES: usize = 1_000;

/// The one timer of a sleeping run.
const TIMER: &str = "timer-1";

/// When the first pending timer is due: later than any measurement.
const FIRST: Duration = days(1);
const YEAR: Duration = days(365);

/// How long to let everything settle before memory is read.
const REST: Duration = Duration::from_secs(5);

/// Time for runs to fall asleep, at least and per run.
const LEAD: Duration = Duration::from_secs(5);
const LEAD_EACH: Duration = Duration::from_millis(2);

pub(crate) struct Figures {
    pub(crate) timers: u64,
    pub(crate) due: u64,
    pub(crate) added_mb: Option<f64>,
    pub(crate) ready_s: f64,
    /// Milliseconds from the last due time until all runs had continued.
    pub(crate) all_resumed_ms: f64,
    pub(crate) early: u64,
    pub(crate) move_ms: f64,
    pub(crate) move_beside_few_ms: f64,
}

impl Timers {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), Failed> {
        let few = beside_few(&session.directory.path().join("few")).await?;
        let data = session.directory.path().join("many");
        let (added_mb, sleepers) = self.fill(&data, session).await?;

        let begun = Instant::now();
        let (server, url) = spawn_server(&data).await?;
        let ready_s = begun.elapsed().as_secs_f64();
        let client = Common::at(url).client().await?;
        let worker = LocalWorker::begin(&client);
        let late = self.fall_due(&client).await?;
        let cost = move_timers(&client, &sleepers).await?;
        worker.end().await?;
        drop(server);

        let report = Report::new("timers", format!("{} pending timers", self.timers))
            .count("timers", self.timers)
            .known("rss_mb_added", added_mb)
            .figure("restart_ready_s", ready_s)
            .count("due_in_one_second", self.due)
            .figure("late_p50_ms", late.each.percentile_ms(50))
            .figure("late_p99_ms", late.each.percentile_ms(99))
            .figure("all_resumed_ms", late.all_ms)
            .count("early", late.early)
            .figure("move_p50_ms", cost.percentile_ms(50))
            .figure("move_p99_ms", cost.percentile_ms(99))
            .figure("move_beside_few_p50_ms", few.percentile_ms(50))
            .figure("move_beside_few_p99_ms", few.percentile_ms(99));
        session.report(&report)?;
        session.figures.timers = Some(Figures {
            timers: self.timers,
            due: self.due,
            added_mb,
            ready_s,
            all_resumed_ms: late.all_ms,
            early: late.early,
            move_ms: cost.percentile_ms(50),
            move_beside_few_ms: few.percentile_ms(50),
        });
        Ok(())
    }

    /// Puts all pending timers into a new engine. Returns the memory that they added to it and to
    /// its worker, and the sleeping workflows.
    async fn fill(
        &self,
        data: &Path,
        session: &Session<'_>,
    ) -> Result<(Option<f64>, Vec<String>), Failed> {
        let processes = Processes::start(data).await?;
        let client = Common::at(processes.url.clone()).client().await?;
        let first = moment(FIRST)?;
        let warm = |_| WaitFor::Until(first);
        fall_asleep(&client, "runs that fill the worker's cache", WARM, warm).await?;
        all_wait(&client, WARM).await?;
        sleep(REST).await;
        let before = processes.memory();
        let mixed = |number: u64| match number % 2 {
            0 => WaitFor::Until(spread(first, number)),
            _ => WaitFor::ForSignal,
        };
        let sleepers = fall_asleep(&client, "runs that wait", self.timers, mixed).await?;
        all_wait(&client, WARM + self.timers).await?;
        sleep(REST.max(session.time)).await;
        let after = processes.memory();
        drop(client);
        processes.end().await?;
        Ok((before.zip(after).map(|(before, after)| after.above(before)), sleepers))
    }

    /// Puts some runs to sleep until the same second, beside all others, and measures when they
    /// continue.
    async fn fall_due(&self, client: &Client) -> Result<Late, Failed> {
        let lead = LEAD + LEAD_EACH * u32::try_from(self.due).unwrap_or(u32::MAX);
        let first = system_now().saturating_add(lead);
        let step = Duration::from_secs(1) / u32::try_from(self.due).unwrap_or(u32::MAX);
        let due = |number| first.saturating_add(step * u32::try_from(number).unwrap_or_default());
        let last = first.saturating_add(Duration::from_secs(1));
        let (waiting, goal) = (resumed::waiting() + self.due, resumed::resumed() + self.due);
        let what = "sleeps that fall due in one second";
        fall_asleep(client, what, self.due, |number| WaitFor::Until(due(number))).await?;
        resumed::until_waiting(waiting).await;
        if system_now() >= first {
            return Err(Failed::refused("the runs did not fall asleep before their time")
                .hint("measure fewer with --due"));
        }
        resumed::until_resumed(goal).await;
        let all_ms = system_now().saturating_since(last).as_secs_f64() * 1e3;
        let gone_on = resumed::take();
        Ok(Late { each: gone_on.late().into(), all_ms, early: gone_on.early() })
    }
}

/// When the due runs continued.
struct Late {
    each: Latencies,
    all_ms: f64,
    early: u64,
}

/// What a move costs in an engine with few timers.
async fn beside_few(data: &Path) -> Result<Latencies, Failed> {
    let processes = Processes::start(data).await?;
    let client = Common::at(processes.url.clone()).client().await?;
    let first = moment(FIRST)?;
    let spread = |number| WaitFor::Until(spread(first, number));
    let sleepers = fall_asleep(&client, "few timers", FEW, spread).await?;
    all_wait(&client, FEW).await?;
    let cost = move_timers(&client, &sleepers).await?;
    drop(client);
    processes.end().await?;
    Ok(cost)
}

/// Moves timers of these workflows, one after another, and measures each move.
async fn move_timers(client: &Client, sleepers: &[String]) -> Result<Latencies, Failed> {
    let bar = progress("moves", MOVES as u64);
    let first = moment(FIRST)?;
    let mut taken = Vec::with_capacity(MOVES);
    let chosen = sleepers.iter().step_by((sleepers.len() / MOVES).max(1)).take(MOVES);
    for (number, id) in (0..).zip(chosen) {
        let due = spread(first, number);
        let begun = Instant::now();
        client.handle::<sleeper>(id.clone()).reschedule_timer(TIMER, due).await?;
        taken.push(begun.elapsed());
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(taken.into())
}

/// A time within the year after `first`; neighbouring numbers get times far apart.
fn spread(first: Timestamp, number: u64) -> Timestamp {
    // Multiples of the golden ratio spread evenly, whatever their number.
    let turn = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    first.saturating_add(Duration::from_secs((YEAR.as_secs() * turn) >> 32))
}
