//! `abide workflow terminate`.

use abide_command::{Common, Failed};
use clap::Args;

use super::{Target, done};

/// Terminate a workflow immediately, without running its code
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow terminate order-7 --reason 'stuck since the move'")]
pub(crate) struct Terminate {
    #[command(flatten)]
    target: Target,
    /// Reason, recorded in the history
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Idempotency key: a retry with the same key has no further effect
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl Terminate {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let mut terminate = self.target.handle(&client).terminate(self.reason);
        if let Some(key) = self.key {
            terminate = terminate.key(key);
        }
        terminate.await.map_err(|error| self.target.failed(error))?;
        done(common.output(), "terminated", &self.target.id)
    }
}
