//! `abide schedule trigger`.

use abide_command::{Common, Failed};
use abide_core::schedule::ScheduleChange;
use clap::Args;

use super::{Target, overlap::Policy};

/// Start a run of a schedule now, whatever its times
#[derive(Args)]
#[command(after_help = "Example:
  abide schedule trigger report
  abide schedule trigger report --overlap allow-all")]
pub(crate) struct Trigger {
    #[command(flatten)]
    target: Target,
    /// What to do if an earlier run is open, instead of the schedule's own policy
    #[arg(long, value_enum, value_name = "POLICY")]
    overlap: Option<Policy>,
    /// Idempotency key: a retry with the same key has no further effect
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl Trigger {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let change = ScheduleChange::Triggered { overlap: self.overlap.map(Into::into) };
        self.target.change(common, change, self.key, "triggered").await
    }
}
