//! Progress for people: in place on a terminal, otherwise an occasional line.

use std::{
    io::IsTerminal,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use abide_sim::runner::Summary;
use indicatif::{ProgressBar, ProgressStyle};

/// Interval between two lines without a terminal.
const PAUSE: Duration = Duration::from_secs(10);

/// Shows the progress of a campaign.
pub(crate) struct Progress {
    began: Instant,
    bar: Option<ProgressBar>,
    last: Mutex<Instant>,
}

impl Progress {
    /// Starts at zero of this many seeds.
    pub(crate) fn new(seeds: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| ProgressBar::new(seeds));
        if let (Some(bar), Ok(style)) =
            (&bar, ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}, {eta} left"))
        {
            bar.set_style(style);
        }
        let began = Instant::now();
        Self { began, bar, last: Mutex::new(began) }
    }

    /// Shows that another seed is done.
    pub(crate) fn show(&self, summary: &Summary) {
        if let Some(bar) = &self.bar {
            bar.set_position(summary.seeds);
            bar.set_message(self.text(summary));
            return;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= PAUSE {
            *last = Instant::now();
            println!("{} seeds, {}", summary.seeds, self.text(summary));
        }
    }

    fn text(&self, summary: &Summary) -> String {
        let rate = rate(summary.seeds, self.elapsed());
        let counts = summary.counts;
        format!("{rate:.0} per second, {} inputs, {} faults", counts.inputs, counts.faults)
    }

    /// Restores the terminal.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// Seeds per second.
pub(crate) fn rate(seeds: u64, elapsed: Duration) -> f64 {
    let seeds = u32::try_from(seeds).map_or(f64::MAX, f64::from);
    seeds / elapsed.as_secs_f64().max(0.001)
}
