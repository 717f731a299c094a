//! `abide workflow terminate`.

use abide_command::{Common, Failed};
use clap::Args;

use super::control::ControlArgs;

/// Terminate a workflow immediately, without running its code
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow terminate order-7 --reason 'stuck since the move'")]
pub(crate) struct Terminate {
    #[command(flatten)]
    args: ControlArgs,
}

impl Terminate {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        self.args.run(common, |handle, reason| handle.terminate(reason), "terminated").await
    }
}
