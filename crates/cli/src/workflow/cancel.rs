//! `abide workflow cancel`.

use abide_command::{Common, Failed};
use clap::Args;

use super::{Target, done};

/// Request cancellation of a workflow; its code may clean up first
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow cancel order-7 --reason 'ordered twice'")]
pub(crate) struct Cancel {
    #[command(flatten)]
    target: Target,
    /// Reason, recorded in the history
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Idempotency key: a retry with the same key has no further effect
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl Cancel {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let mut cancel = self.target.handle(&client).cancel().reason(self.reason);
        if let Some(key) = self.key {
            cancel = cancel.key(key);
        }
        cancel.await.map_err(|error| self.target.failed(error))?;
        done(common.output(), "asked to cancel", &self.target.id)
    }
}
