//! Which runs are listed or counted.

use abide::{Client, ClientError, Timestamp};
use abide_command::time::{ago, parse_length, parse_moment};
use abide_core::{
    list::{RunFilter, RunStatus},
    operation::CountRuns,
};
use clap::{Args, ValueEnum};

/// Selects runs that match all given options.
#[derive(Args)]
pub(crate) struct Filter {
    /// Only runs of this type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    workflow_type: Option<String>,
    /// Only runs with this status; repeat for several
    #[arg(short, long, value_enum, value_name = "STATUS")]
    status: Vec<Status>,
    /// Only runs with this workflow id
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Only runs started at or after this time, or at most this long ago, such as 2h
    #[arg(long, value_name = "TIME", value_parser = past)]
    started_after: Option<Timestamp>,
    /// Only runs started before this time, or longer ago than this
    #[arg(long, value_name = "TIME", value_parser = past)]
    started_before: Option<Timestamp>,
    /// Only runs that pass this query, such as "Amount > 100 AND ExecutionStatus = 'Running'"
    #[arg(long, value_name = "QUERY")]
    query: Option<String>,
}

impl From<Filter> for RunFilter {
    fn from(filter: Filter) -> Self {
        Self {
            workflow: filter.id.map(Into::into),
            workflow_type: filter.workflow_type,
            statuses: filter.status.into_iter().flat_map(Status::statuses).collect(),
            started_from: filter.started_after,
            started_before: filter.started_before,
            query: filter.query.unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// The statuses of runs that are not closed.
pub(super) const OPEN: [RunStatus; 3] =
    [RunStatus::Running, RunStatus::Paused, RunStatus::ReplayBlocked];

/// The status of a run.
#[derive(Clone, Copy, ValueEnum)]
enum Status {
    /// Running, paused or replay-blocked
    Open,
    /// Open
    Running,
    /// Open; tasks are held back
    Paused,
    /// Open; its code does not fit its history
    ReplayBlocked,
    /// Closed with a result
    Completed,
    /// Closed with a failure
    Failed,
    /// Closed by a timeout
    TimedOut,
    /// Closed after a cancel request
    Cancelled,
    /// Closed by `terminate`
    Terminated,
    /// Closed; a new run continues
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

/// The filter, for runs of the client's namespace.
pub(crate) fn in_namespace(client: &Client, filter: RunFilter) -> RunFilter {
    RunFilter { namespace: Some(client.namespace().clone()), ..filter }
}

/// How many runs of the client's namespace pass the filter.
pub(crate) async fn count_runs(client: &Client, filter: RunFilter) -> Result<u64, ClientError> {
    Ok(client.ask(CountRuns { filter: in_namespace(client, filter) }).await?.0)
}

#[cfg(test)]
mod tests {
    use abide_command::time::system_now;

    use super::*;

    #[test]
    fn a_time_is_a_moment_or_how_long_ago() {
        assert_eq!(past("1970-01-01T00:00:01Z").unwrap().seconds(), 1);
        let ago = system_now().seconds() - past("2h").unwrap().seconds();
        assert!((7_200..7_210).contains(&ago), "{ago}");
        assert!(past("yesterday").is_err());
    }
}
