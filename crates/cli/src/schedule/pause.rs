//! `abide schedule pause` and `abide schedule unpause`.

use abide_command::{Common, Failed};
use abide_core::schedule::ScheduleChange;
use clap::Args;

use super::Target;

#[derive(Args)]
struct PauseArgs {
    #[command(flatten)]
    target: Target,
    /// Why, shown with the schedule
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Idempotency key: a retry with the same key has no further effect
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

/// Pause a schedule: its times start nothing
///
/// Triggers and backfills still start runs. Runs that are open go on.
#[derive(Args)]
#[command(after_help = "Example:
  abide schedule pause report --note 'the office is closed'")]
pub(crate) struct Pause {
    #[command(flatten)]
    args: PauseArgs,
}

/// Unpause a schedule
///
/// Times that have passed during the pause are not made up for; `abide schedule backfill` does that.
#[derive(Args)]
#[command(after_help = "Example:
  abide schedule unpause report --note 'open again'")]
pub(crate) struct Unpause {
    #[command(flatten)]
    args: PauseArgs,
}

impl Pause {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let PauseArgs { target, note, key } = self.args;
        target.change(common, ScheduleChange::Paused { note }, key, "paused").await
    }
}

impl Unpause {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let PauseArgs { target, note, key } = self.args;
        target.change(common, ScheduleChange::Unpaused { note }, key, "unpaused").await
    }
}
