//! `abide workflow pause` and `abide workflow unpause`.

use abide_command::{Common, Failed};
use clap::Args;

use super::control::ControlArgs;

/// Pause a workflow: none of its tasks are handed to workers
///
/// Signals are accepted and timers fire, and their effects wait until the workflow is unpaused. Activity
/// attempts in flight continue. Pausing a paused workflow has no effect.
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow pause order-7 --reason 'the shop is closed'")]
pub(crate) struct Pause {
    #[command(flatten)]
    args: ControlArgs,
}

impl Pause {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        self.args.run(common, |handle, reason| handle.pause(reason), "paused").await
    }
}

/// Unpause a workflow
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow unpause order-7 --reason 'open again'")]
pub(crate) struct Unpause {
    #[command(flatten)]
    args: ControlArgs,
}

impl Unpause {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        self.args.run(common, |handle, reason| handle.unpause(reason), "unpaused").await
    }
}
