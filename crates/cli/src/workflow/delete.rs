//! `abide workflow delete`.

use abide_command::{Common, Failed};
use clap::Args;

use super::{Target, done};

/// Delete a closed run: its history, its rows and its keys
///
/// Without --run this is the current run; earlier runs of the workflow stay.
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow delete order-7
  abide workflow delete order-7 --terminate")]
pub(crate) struct Delete {
    #[command(flatten)]
    target: Target,
    /// Terminate the run first if it is open
    #[arg(long)]
    terminate: bool,
}

impl Delete {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        // Both steps are about the same run, also if another one starts meanwhile.
        let shown =
            self.target.describe(&client).await.map_err(|error| self.target.failed(error))?;
        let handle = self.target.handle(&client).run(shown.run);
        if self.terminate && shown.status.is_open() {
            let ended = handle.terminate("deleted").await;
            ended.map_err(|error| self.target.failed(error))?;
        }
        handle.delete().await.map_err(|error| self.target.failed(error))?;
        done(common.output(), "deleted", &self.target.id)
    }
}
