//! What a schedule starts, when, and what it does if an earlier start still runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Spec;
use crate::{
    event::RunSpec,
    ids::{NamespaceId, WorkflowId, WorkflowKey},
    limits::{InvalidField, Limits},
    payload::{map_size, size},
    time::Timestamp,
};

/// Workflow type of the runs that are schedules.
pub const SCHEDULE_TYPE: &str = "abide.schedule";

/// Workflow ids with this prefix are schedules; no caller can start a workflow with such an id.
const ID_PREFIX: &str = "abide.schedule:";

/// The workflow that is the schedule of this id.
pub fn key_of(namespace: NamespaceId, schedule: &str) -> WorkflowKey {
    WorkflowKey { namespace, workflow: format!("{ID_PREFIX}{schedule}").into() }
}

/// Id of the schedule that the workflow is; `None` if it is none.
pub fn id_of(workflow: &WorkflowId) -> Option<&str> {
    workflow.as_str().strip_prefix(ID_PREFIX)
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    pub spec: Spec,
    /// Workflow ids of what it starts: this, a dash and the nominal time.
    pub workflow: WorkflowId,
    /// What it starts.
    pub run: RunSpec,
    /// Skip, unless it says otherwise.
    pub overlap: Option<Overlap>,
    /// How late a start may be, after downtime; a year, unless it says otherwise.
    pub catch_up: Option<Duration>,
    /// Whether it pauses itself when a run that it started fails or times out.
    pub pause_on_failure: bool,
    /// Number of starts that are left; `None` for any number. Triggers and backfills do not count.
    pub remaining: Option<u64>,
}

/// What happens if a start is due while a run of an earlier one is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Overlap {
    /// The start is left out.
    #[default]
    Skip,
    /// One start waits for the end of the open run; others are left out.
    BufferOne,
    /// Starts wait, and follow one by one.
    BufferAll,
    /// It starts beside the others.
    AllowAll,
    /// The open runs are asked to cancel themselves; the start follows when they are closed.
    CancelOther,
    /// The open runs are terminated; the start follows.
    TerminateOther,
}

const CATCH_UP_DEFAULT: Duration = Duration::from_secs(365 * 24 * 3600);
const CATCH_UP_MIN: Duration = Duration::from_secs(10);
const CATCH_UP_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

impl Schedule {
    /// What happens if a start is due while a run of an earlier one is open.
    pub fn overlap(&self) -> Overlap {
        self.overlap.unwrap_or_default()
    }

    /// How late a start may be.
    pub fn catch_up(&self) -> Duration {
        self.catch_up.unwrap_or(CATCH_UP_DEFAULT)
    }

    /// Bytes that each start copies.
    pub(super) fn start_bytes(&self) -> usize {
        let run = &self.run;
        let maps = map_size(&run.header) + map_size(&run.memo) + map_size(&run.search_attributes);
        let types = run.retry.iter().flat_map(|policy| &policy.non_retryable_types);
        (size(&run.input) + maps).memory() + types.map(String::len).sum::<usize>()
    }

    /// Refuses a schedule that is malformed, too large, or never due.
    pub fn check(&self, limits: &Limits, now: Timestamp) -> Result<(), InvalidField> {
        self.spec.check(now)?;
        limits.check_name("workflow id", self.workflow.as_str())?;
        let longest = planned_workflow(&self.workflow, Timestamp::LATEST);
        limits.check_name("workflow id with its time", longest.as_str())?;
        if id_of(&self.workflow).is_some() {
            return Err(InvalidField::new("workflow id", RESERVED));
        }
        limits.check_spec(&self.run)?;
        let (bytes, limit) = (self.start_bytes(), limits.schedules.run_bytes);
        if bytes > limit {
            let parts = "input, header, memo, search attributes and retry policy";
            let problem = format!(
                "takes {bytes} bytes of {parts}, the limit is {limit} because each start copies them; \
                 pass a reference to large data"
            );
            return Err(InvalidField::new("workflow of the schedule", problem));
        }
        if self.run.cron.is_some() {
            let problem = "does not go with a schedule; put the expression into its times";
            return Err(InvalidField::new("cron of the workflow", problem));
        }
        let catch_up = self.catch_up();
        if !(CATCH_UP_MIN..=CATCH_UP_MAX).contains(&catch_up) {
            let problem = format!("is {catch_up:?}, not in {CATCH_UP_MIN:?} to {CATCH_UP_MAX:?}");
            return Err(InvalidField::new("catch-up window", problem));
        }
        if self.remaining == Some(0) {
            return Err(InvalidField::new("remaining", "is 0; leave it out for any number"));
        }
        Ok(())
    }
}

/// Why an id is refused that belongs to a schedule.
pub const RESERVED: &str = "begins with abide.schedule:, which is for schedules; use another id, or the \
                            operations of schedules";

/// Workflow id of the start for a nominal time.
pub(super) fn planned_workflow(workflow: &WorkflowId, nominal: Timestamp) -> WorkflowId {
    format!("{workflow}-{nominal}").into()
}
