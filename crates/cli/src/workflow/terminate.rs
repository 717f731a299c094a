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
}

impl Terminate {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let terminated = self.target.handle(&client).terminate(self.reason).await;
        terminated.map_err(|error| self.target.failed(error))?;
        done(common.output(), "terminated", &self.target.id)
    }
}
