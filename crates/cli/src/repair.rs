//! `abide repair`: retries whatever is stuck.

use clap::Args;

use crate::{
    connection::Common,
    failed::Failed,
    workflow::{Target, done},
};

/// Try again whatever is stuck in a workflow
///
/// A run whose code did not fit its history is tried again with the code that workers have now, and
/// rows that are missing are made anew from the run's log. Nothing is invented, so this is always safe.
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
