//! `abide workflow pause` and `abide workflow unpause`.

use abide_command::{Common, Failed};
use clap::Args;

use super::{Target, done};

/// Pause a workflow: none of its tasks are handed to workers
///
/// Signals are accepted and timers fire, and their effects wait until the workflow is unpaused. Activity
/// attempts in flight continue. Pausing a paused workflow has no effect.
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow pause order-7 --reason 'the shop is closed'")]
pub(crate) struct Pause {
    #[command(flatten)]
    target: Target,
    /// Reason, recorded in the history
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Idempotency key: a retry with the same key has no further effect
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

/// Unpause a workflow
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow unpause order-7 --reason 'open again'")]
pub(crate) struct Unpause {
    #[command(flatten)]
    target: Target,
    /// Reason, recorded in the history
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Idempotency key: a retry with the same key has no further effect
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
