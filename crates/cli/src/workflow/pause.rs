//! `abide workflow pause` and `abide workflow unpause`.

use clap::Args;

use super::{Target, done};
use crate::{connection::Common, failed::Failed};

/// Hold a workflow: nothing new of it is handed to workers until it is unpaused
///
/// Signals are taken and timers fire, and all of it is kept until the pause is over. An attempt of an
/// activity that is under way goes on. Pausing a workflow that is paused changes nothing.
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow pause order-7 --reason 'the shop is closed'")]
pub(crate) struct Pause {
    #[command(flatten)]
    target: Target,
    /// Why, as the history shows it
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Makes repeats of this request the same request
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl Pause {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let mut pause = self.target.handle(&client).pause(self.reason);
        if let Some(key) = self.key {
            pause = pause.key(key);
        }
        pause.await.map_err(|error| self.target.failed(error))?;
        done(common.output(), "paused", &self.target.id)
    }
}

/// End the pause of a workflow
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow unpause order-7 --reason 'open again'")]
pub(crate) struct Unpause {
    #[command(flatten)]
    target: Target,
    /// Why, as the history shows it
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Makes repeats of this request the same request
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl Unpause {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let mut unpause = self.target.handle(&client).unpause(self.reason);
        if let Some(key) = self.key {
            unpause = unpause.key(key);
        }
        unpause.await.map_err(|error| self.target.failed(error))?;
        done(common.output(), "unpaused", &self.target.id)
    }
}
