//! `abide repair`: retries whatever is stuck.

use abide_command::{Common, Failed};
use clap::Args;

use crate::workflow::{Target, done};

/// Retry a stuck workflow and rebuild its derived rows
///
/// Retries a run whose code did not fit its history, with the code that workers have now, and rebuilds
/// missing rows from the run's log. It only derives data from the log, so it is always safe.
#[derive(Args)]
#[command(after_help = "Example:
  abide repair order-7")]
pub(crate) struct Repair {
    #[command(flatten)]
    target: Target,
}

impl Repair {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let repaired = self.target.handle(&client).repair().await;
        repaired.map_err(|error| self.target.failed(error))?;
        done(common.output(), "repaired", &self.target.id)
    }
}
