//! `abide bench signal`: the round trip of a signal that ends a run.

use std::time::Instant;

use abide_benches::latencies::Latencies;
use abide_command::Failed;
use clap::Args;
use uuid::Uuid;

use crate::{
    options::at_least_one,
    place::Deployment,
    report::{Report, progress},
    resumed,
    session::Session,
    workflows::{QUEUE, Signalled},
};

/// Measure a signal's round trip: sent, acknowledged, the run completed, seen by the client
#[derive(Args)]
#[command(after_help = "Example:
  abide bench signal --runs 500")]
pub(crate) struct Signal {
    /// How many signals, one after the other
    #[arg(long, value_name = "COUNT", default_value_t = 300, value_parser = at_least_one)]
    runs: u64,
}

impl Default for Signal {
    fn default() -> Self {
        Self { runs: 300 }
    }
}

pub(crate) struct Figures {
    pub(crate) p50_ms: f64,
}

impl Signal {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), Failed> {
        let directory = session.directory.path().join("signal");
        std::fs::create_dir_all(&directory)?;
        let place = Deployment::given(session.common, &directory).await?;
        let bar = progress("signals", self.runs);
        let (mut acknowledged, mut round_trips) = (Vec::new(), Vec::new());
        for _ in 0..self.runs {
            let waiting = resumed::waiting() + 1;
            let id = format!("signal-{}", Uuid::now_v7());
            let run = Signalled::start(&place.client, id).queue(QUEUE).await?;
            resumed::until_waiting(waiting).await;
            let before = Instant::now();
            run.go().await?;
            acknowledged.push(before.elapsed());
            run.result().await?;
            round_trips.push(before.elapsed());
            bar.inc(1);
        }
        bar.finish_and_clear();
        let (acknowledged, round_trips) =
            (Latencies::from(acknowledged), Latencies::from(round_trips));
        session.report(
            &Report::new("signal", format!("{}, one after the other", place.what))
                .count("runs", self.runs)
                .figure("acknowledged_p50_ms", acknowledged.percentile_ms(50))
                .figure("p50_ms", round_trips.percentile_ms(50))
                .figure("p99_ms", round_trips.percentile_ms(99)),
        )?;
        place.end().await?;
        if session.measures_itself() {
            session.figures.signal = Some(Figures { p50_ms: round_trips.percentile_ms(50) });
        }
        Ok(())
    }
}
