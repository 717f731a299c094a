//! Which runs are listed or counted.

use abide::Timestamp;
use abide_core::list::{RunFilter, RunStatus};
use clap::{Args, ValueEnum};

use crate::output::{ago, parse_length, parse_moment};

/// Which runs are meant. All of what is said must hold.
#[derive(Args)]
pub(crate) struct Filter {
    /// Only runs of this type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    workflow_type: Option<String>,
    /// Only runs that stand so; repeat it for several
    #[arg(short, long, value_enum, value_name = "STATUS")]
    status: Vec<Status>,
    /// Only runs of this workflow id
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Only runs started at this moment or later; or so long ago at most, as in "2h"
    #[arg(long, value_name = "TIME", value_parser = past)]
    started_after: Option<Timestamp>,
    /// Only runs started before this moment; or longer ago than this
    #[arg(long, value_name = "TIME", value_parser = past)]
    started_before: Option<Timestamp>,
}

impl From<Filter> for RunFilter {
    fn from(filter: Filter) -> Self {
        Self {
            workflow: filter.id.map(Into::into),
            workflow_type: filter.workflow_type,
            statuses: filter.status.into_iter().flat_map(Status::statuses).collect(),
            started_from: filter.started_after,
            started_before: filter.started_before,
            ..Self::default()
        }
    }
}

/// The statuses of runs that are not closed.
pub(super) const OPEN: [RunStatus; 3] =
    [RunStatus::Running, RunStatus::Paused, RunStatus::ReplayBlocked];

/// How a run stands.
#[derive(Clone, Copy, ValueEnum)]
enum Status {
    /// Running, paused or replay-blocked
    Open,
    /// Open
    Running,
    /// Open, and nothing new is handed out
    Paused,
    /// Open, but its code does not fit its history
    ReplayBlocked,
    /// Closed with a result
    Completed,
    /// Closed with a failure
    Failed,
    /// Closed because its time was up
    TimedOut,
    /// Closed by its own answer to a cancel request
    Cancelled,
    /// Closed from outside
    Terminated,
    /// Closed, and the next run goes on
    ContinuedAsNew,
}

impl Status {
    fn statuses(self) -> Vec<RunStatus> {
        vec![match self {
            Self::Open => return OPEN.into(),
            Self::Running => RunStatus::Running,
            Self::Paused => RunStatus::Paused,
            Self::ReplayBlocked => RunStatus::ReplayBlocked,
            Self::Completed => RunStatus::Completed,
            Self::Failed => RunStatus::Failed,
            Self::TimedOut => RunStatus::TimedOut,
            Self::Cancelled => RunStatus::Cancelled,
            Self::Terminated => RunStatus::Terminated,
            Self::ContinuedAsNew => RunStatus::ContinuedAsNew,
        }]
    }
}

/// Parses a moment, or how long ago it was.
fn past(text: &str) -> Result<Timestamp, String> {
    match parse_length(text) {
        Ok(length) => Ok(ago(length)),
        Err(_) => parse_moment(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::system_now;

    #[test]
    fn a_time_is_a_moment_or_how_long_ago() {
        assert_eq!(past("1970-01-01T00:00:01Z").unwrap().seconds(), 1);
        let ago = system_now().seconds() - past("2h").unwrap().seconds();
        assert!((7_200..7_210).contains(&ago), "{ago}");
        assert!(past("yesterday").is_err());
    }
}
