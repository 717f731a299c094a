//! `abide bench sleep`: how late workflow code continues after its sleep.

use std::time::Duration;

use abide::{Client, Timestamp};
use abide_benches::latencies::Latencies;
use abide_command::{Failed, time::system_now};
use clap::Args;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::{
    options::at_least_one,
    place::Deployment,
    report::{Report, progress},
    resumed,
    session::Session,
    workflows::{QUEUE, sleeper},
};

/// Measure how late sleeps end: from the due time to workflow code that goes on
#[derive(Args)]
#[command(after_help = "Example:
  abide bench sleep --runs 2000")]
pub(crate) struct Sleep {
    /// How many sleeps are due at one moment, and how many are spread
    #[arg(long, value_name = "COUNT", default_value_t = 2_000, value_parser = at_least_one)]
    runs: u64,
    /// Over how long the spread ones are spread
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    spread: u64,
    /// How many sleep one after the other, alone
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = at_least_one)]
    lone: u64,
}

impl Default for Sleep {
    fn default() -> Self {
        Self { runs: 2_000, spread: 10, lone: 100 }
    }
}

/// Time for runs to fall asleep, at least and per run.
const LEAD: Duration = Duration::from_secs(2);
const LEAD_EACH: Duration = Duration::from_millis(2);

/// How long a lone timer sleeps: long enough for everything else to settle.
const LONE: Duration = Duration::from_millis(100);

pub(crate) struct Figures {
    pub(crate) runs: u64,
    pub(crate) at_once_p99_ms: f64,
    pub(crate) lone_p99_ms: f64,
    pub(crate) early: u64,
}

impl Sleep {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), Failed> {
        let directory = session.directory.path().join("sleep");
        std::fs::create_dir_all(&directory)?;
        let place = Deployment::given(session.common, &directory).await?;
        let lead = LEAD + LEAD_EACH * u32::try_from(self.runs).unwrap_or(u32::MAX);
        let due = system_now().saturating_add(lead);
        let at_once = asleep(&place.client, "due at one moment", self.runs, |_| due).await?;
        self.tell(session, format!("{} due at one moment", self.runs), &at_once)?;
        let first = system_now().saturating_add(lead);
        let spread = Duration::from_secs(self.spread);
        let step = spread / u32::try_from(self.runs).unwrap_or(u32::MAX);
        let due = |number| first.saturating_add(step * u32::try_from(number).unwrap_or_default());
        let spread = asleep(&place.client, "spread", self.runs, due).await?;
        self.tell(session, format!("{} spread over {} s", self.runs, self.spread), &spread)?;
        let lone = self.alone(&place.client).await?;
        self.tell(session, format!("{} alone, one after the other", self.lone), &lone)?;
        place.end().await?;
        if session.measures_itself() {
            session.figures.sleep = Some(Figures {
                runs: self.runs,
                at_once_p99_ms: at_once.late.percentile_ms(99),
                lone_p99_ms: lone.late.percentile_ms(99),
                early: at_once.early + spread.early + lone.early,
            });
        }
        Ok(())
    }

    fn tell(&self, session: &Session<'_>, what: String, slept: &Slept) -> Result<(), Failed> {
        session.report(
            &Report::new("sleep", what)
                .count("runs", slept.late.count() as u64)
                .figure("p50_ms", slept.late.percentile_ms(50))
                .figure("p99_ms", slept.late.percentile_ms(99))
                .figure("max_ms", slept.late.max_ms())
                .count("early", slept.early),
        )
    }

    async fn alone(&self, client: &Client) -> Result<Slept, Failed> {
        let bar = progress("lone timers", self.lone);
        for _ in 0..self.lone {
            let goal = resumed::resumed() + 1;
            start(client, system_now().saturating_add(LONE)).await?;
            resumed::until_resumed(goal).await;
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(Slept::take())
    }
}

/// How late the sleeps of one measurement ended.
struct Slept {
    late: Latencies,
    early: u64,
}

impl Slept {
    fn take() -> Self {
        let gone_on = resumed::take();
        Self { late: gone_on.late().into(), early: gone_on.early() }
    }
}

/// Puts so many runs to sleep, and waits until all have continued.
async fn asleep(
    client: &Client,
    what: &'static str,
    runs: u64,
    due: impl Fn(u64) -> Timestamp,
) -> Result<Slept, Failed> {
    let bar = progress(format!("sleeps, {what}"), runs);
    let (waiting, goal) = (resumed::waiting() + runs, resumed::resumed() + runs);
    let mut starts = JoinSet::new();
    for number in 0..runs {
        let (client, due) = (client.clone(), due(number));
        starts.spawn(async move { start(&client, due).await });
    }
    while let Some(started) = starts.join_next().await {
        started.map_err(Failed::refused)??;
        bar.inc(1);
    }
    resumed::until_waiting(waiting).await;
    if system_now() >= due(0) {
        return Err(Failed::refused("the runs did not fall asleep before their time")
            .hint("measure fewer with --runs"));
    }
    resumed::until_resumed(goal).await;
    bar.finish_and_clear();
    Ok(Slept::take())
}

/// Starts a run that sleeps until then, to the millisecond.
async fn start(client: &Client, due: Timestamp) -> Result<(), Failed> {
    let id = format!("sleep-{}", Uuid::now_v7());
    sleeper::start(client, id, due.unix_millis()).queue(QUEUE).await?;
    Ok(())
}
