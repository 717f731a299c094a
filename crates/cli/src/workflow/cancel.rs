//! `abide workflow cancel`.

use abide_command::{Common, Failed};
use clap::Args;

use super::control::ControlArgs;

/// Request cancellation of a workflow; its code may clean up first
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow cancel order-7 --reason 'ordered twice'")]
pub(crate) struct Cancel {
    #[command(flatten)]
    args: ControlArgs,
}

impl Cancel {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        self.args
            .run(common, |handle, reason| handle.cancel().reason(reason), "asked to cancel")
            .await
    }
}
