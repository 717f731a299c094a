//! `abide schedule backfill`.

use abide::Timestamp;
use abide_command::{Common, Failed, time::parse_moment};
use abide_core::schedule::ScheduleChange;
use clap::Args;

use super::{Target, overlap::Policy};

/// Start a run for each time of a schedule in a span of the past
///
/// A span has at most 1000 times; divide a longer one.
#[derive(Args)]
#[command(after_help = "Example:
  abide schedule backfill report --from 2026-11-01T00:00:00Z --to 2026-11-07T23:59:59Z
  abide schedule backfill report --from 2026-11-01T00:00:00Z --to 2026-11-07T23:59:59Z --overlap buffer-all")]
pub(crate) struct Backfill {
    #[command(flatten)]
    target: Target,
    /// First moment of the span
    #[arg(long, value_name = "MOMENT", value_parser = parse_moment)]
    from: Timestamp,
    /// Last moment of the span
    #[arg(long, value_name = "MOMENT", value_parser = parse_moment)]
    to: Timestamp,
    /// What to do if an earlier run is open, instead of the schedule's own policy
    #[arg(long, value_enum, value_name = "POLICY")]
    overlap: Option<Policy>,
    /// Idempotency key: a retry with the same key has no further effect
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl Backfill {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let Self { target, from, to, overlap, key } = self;
        let change = ScheduleChange::Backfilled { from, to, overlap: overlap.map(Into::into) };
        target.change(common, change, key, "backfilled").await
    }
}
