//! The command line of the benchmarks, and what each measurement needs before it.

use std::{path::PathBuf, time::Duration};

use abide_command::{Common, Failed};
use clap::{Args, Subcommand};

use crate::{
    aims::Figures, hello, idle, postgres, session::Session, signal, sleep, store, timers, worker,
};

/// Measure what this machine does
///
/// Figures go to standard output, progress to standard error. Where an aim of the project can be
/// computed from what was measured, the report says whether this run met it.
#[derive(Args)]
pub struct Bench {
    #[command(subcommand)]
    what: What,
    /// Where files are put while it measures; it must be on the disk that is meant
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// For how long each rate is measured
    #[arg(long, global = true, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    seconds: Duration,
}

/// What is measured.
#[derive(Subcommand)]
enum What {
    Store(store::Store),
    Hello(hello::Hello),
    Sleep(sleep::Sleep),
    Signal(signal::Signal),
    Idle(idle::Idle),
    Timers(timers::Timers),
    Postgres(postgres::Postgres),
    All(All),
    Worker(worker::Worker),
}

impl What {
    /// Whether the measurement starts its own engine and cannot use a remote one.
    const fn is_alone(&self) -> bool {
        matches!(
            self,
            Self::Store(_) | Self::Idle(_) | Self::Timers(_) | Self::Postgres(_) | Self::All(_)
        )
    }
}

/// Measure everything, and say which aims were met
#[derive(Args)]
#[command(after_help = "Example:
  abide bench all
  abide bench all --json > figures.jsonl")]
struct All {
    #[command(flatten)]
    store: store::Store,
    /// How many sleeping runs `idle` makes
    #[arg(long, value_name = "COUNT", default_value_t = 100_000, value_parser = at_least_one)]
    sleepers: u64,
}

impl Bench {
    /// Measures, or serves as the worker of a measurement.
    pub async fn run(self, common: &Common) -> Result<(), Failed> {
        if let What::Worker(worker) = self.what {
            return worker.run(common).await;
        }
        if self.what.is_alone() && common.address.is_some() {
            let what =
                "this measures an engine that it starts itself, and none that runs elsewhere";
            return Err(Failed::usage(what)
                .hint("leave --address out, or measure `hello`, `sleep` or `signal` there"));
        }
        let directory = tempfile::tempdir_in(&self.directory).map_err(|error| {
            let place = self.directory.display();
            Failed::usage(format_args!("no files can be put into {place}: {error}"))
                .hint("name another folder with --directory DIR")
        })?;
        let output = common.output();
        let mut session =
            Session { common, output, directory, time: self.seconds, figures: Figures::default() };
        match self.what {
            What::Store(store) => store.run(&mut session).await?,
            What::Hello(hello) => {
                store::Store::default().run(&mut session).await?;
                hello.run(&mut session).await?;
            }
            What::Sleep(sleep) => {
                store::Store::default().run(&mut session).await?;
                hello::Hello::default().run(&mut session).await?;
                sleep.run(&mut session).await?;
            }
            What::Signal(signal) => {
                store::Store::default().run(&mut session).await?;
                signal.run(&mut session).await?;
            }
            What::Idle(idle) => idle.run(&mut session).await?,
            What::Timers(timers) => {
                hello::Hello::default().run(&mut session).await?;
                timers.run(&mut session).await?;
            }
            What::Postgres(postgres) => postgres.run(&mut session).await?,
            What::All(all) => all.run(&mut session).await?,
            What::Worker(_) => {}
        }
        session.figures.aims().into_iter().try_for_each(|aim| output.say_lines(&aim.object(), aim))
    }
}

impl All {
    async fn run(self, session: &mut Session<'_>) -> Result<(), Failed> {
        self.store.run(session).await?;
        hello::Hello::default().run(session).await?;
        hello::Hello::spawned().run(session).await?;
        sleep::Sleep::default().run(session).await?;
        signal::Signal::default().run(session).await?;
        idle::Idle::with(self.sleepers).run(session).await
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse().map(Duration::try_from_secs_f64) {
        Ok(Ok(time)) if !time.is_zero() => Ok(time),
        _ => Err("it must be a number above zero".into()),
    }
}

pub(crate) fn at_least_one(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("it must be a number above zero".into()),
    }
}
