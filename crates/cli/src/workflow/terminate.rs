//! `abide workflow terminate`.

use clap::Args;

use super::{Target, done};
use crate::{connection::Common, failed::Failed};

/// End a workflow at once; its code is not asked
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow terminate order-7 --reason 'stuck since the move'")]
pub(crate) struct Terminate {
    #[command(flatten)]
    target: Target,
    /// Why, as the history shows it
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Makes repeats of this request the same request
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
