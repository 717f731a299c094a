//! A run as `describe` shows it to users of the SDK.

use abide_core::{
    ids::{RunId, UpdateId, WorkflowKey},
    payload::PayloadMap,
    run,
};

use super::run_state::{
    Liveness, PendingActivity, PendingChild, ResumeSource, RunOutcome, RunReference, TaskTrouble,
};
use crate::{
    Timestamp,
    list::{RunStatus, Wait},
    payload::{PayloadError, PayloadValue},
    search::SearchAttribute,
};

/// The state of a run at one moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Description {
    /// The workflow and its namespace.
    pub workflow: WorkflowKey,
    /// The id of the run.
    pub run: RunId,
    /// The type name of the workflow.
    pub workflow_type: String,
    /// The queue whose workers run its code.
    pub queue: String,
    /// The status that lists show.
    pub status: RunStatus,
    /// What the run is doing.
    pub liveness: Liveness,
    /// What will resume it; an open run without any is stranded.
    pub resume_sources: Vec<ResumeSource>,
    /// The first run of the chain.
    pub first_run: RunId,
    /// The number of the attempt, by the retry policy of the start.
    pub attempt: u32,
    /// The run whose history a reset copied to make this one.
    pub reset_from: Option<RunId>,
    /// The parent, if the run is a child.
    pub parent: Option<RunReference>,
    /// When the run started.
    pub started_at: Timestamp,
    /// When its code starts, if it has not yet: by a start delay, a retry or a cron schedule.
    pub begins_at: Option<Timestamp>,
    /// When the run ended; none while it is open.
    pub closed_at: Option<Timestamp>,
    /// When the run times out.
    pub deadline: Option<Timestamp>,
    /// The run that continues it.
    pub next_run: Option<RunId>,
    /// How it ended.
    pub outcome: Option<RunOutcome>,
    /// How many events its history has.
    pub history_events: u64,
    /// How many bytes its history has.
    pub history_bytes: u64,
    /// Whether its cancellation was requested.
    pub cancel_requested: bool,
    /// Why its workflow task fails and is retried, if it does.
    pub trouble: Option<TaskTrouble>,
    /// What it waits for: timers, signals, conditions, approvals, retries.
    pub waits: Vec<Wait>,
    /// The activities that have no result yet.
    pub activities: Vec<PendingActivity>,
    /// The children that have no result yet.
    pub children: Vec<PendingChild>,
    /// The updates that have no outcome yet.
    pub updates: Vec<UpdateId>,
    memo: PayloadMap,
    search_attributes: PayloadMap,
}

impl Description {
    pub(super) fn of(shown: run::Description) -> Self {
        Self {
            workflow: shown.workflow,
            run: shown.run,
            workflow_type: shown.workflow_type,
            queue: shown.queue,
            status: shown.status.into(),
            liveness: shown.liveness.into(),
            resume_sources: shown.resume_sources.into_iter().map(Into::into).collect(),
            first_run: shown.first_run,
            reset_from: shown.reset_from,
            attempt: shown.attempt,
            parent: shown.parent.map(Into::into),
            started_at: shown.started_at,
            begins_at: shown.begins_at,
            closed_at: shown.closed_at,
            deadline: shown.deadline,
            next_run: shown.next_run,
            outcome: shown.outcome.map(Into::into),
            history_events: shown.last_event,
            history_bytes: shown.history_bytes,
            cancel_requested: shown.cancel_requested,
            trouble: shown.trouble.map(Into::into),
            waits: shown.waits.into_iter().map(Wait::of).collect(),
            activities: shown.activities.into_iter().map(Into::into).collect(),
            children: shown.children.into_iter().map(Into::into).collect(),
            updates: shown.updates,
            memo: shown.memo,
            search_attributes: shown.search_attributes,
        }
    }

    /// A search attribute of the run, if it is set.
    pub fn search_attribute<T: PayloadValue>(
        &self,
        attribute: SearchAttribute<T>,
    ) -> Option<Result<T, PayloadError>> {
        attribute.of(&self.search_attributes)
    }

    /// The names of all search attributes that the run has.
    pub fn search_attribute_names(&self) -> impl Iterator<Item = &str> {
        self.search_attributes.keys().map(String::as_str)
    }

    /// A named value of the run's memo, as its start or its code has set it.
    pub fn memo<T: PayloadValue>(&self, name: &str) -> Option<Result<T, PayloadError>> {
        crate::list::decoded(&self.memo, name)
    }

    /// The names of all values that the run's memo has.
    pub fn memo_names(&self) -> impl Iterator<Item = &str> {
        self.memo.keys().map(String::as_str)
    }
}
