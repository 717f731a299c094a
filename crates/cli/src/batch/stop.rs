//! `abide batch stop`.

use abide_command::{Common, Failed};
use clap::Args;

use super::object;

/// Stop a batch; what it has done stays done
#[derive(Args)]
#[command(after_help = "Example:
  abide batch stop 4f1c…")]
pub(crate) struct Stop {
    /// Id of the batch
    id: String,
}

impl Stop {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let stopped = common.client().await?.stop_batch(&self.id).await?;
        let (id, status) = (&stopped.id, stopped.status);
        let words =
            format_args!("batch {id} is {status}: {} of {} done", stopped.done, stopped.total);
        common.output().say(&object(&stopped), words)
    }
}
