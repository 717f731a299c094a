//! A run as people and programs see it: what it is, its state, and all that it waits for.

use super::{Activity, Close, Liveness, Phase, ResumeSource, Retry, Run, ShownWait, Status, Task};
use crate::{
    effect::RunOutcome,
    event::{Blocked, RunReference, TaskFailureCause},
    failure::Failure,
    ids::{ActivityId, RunId, UpdateId, WorkflowKey},
    list::RunStatus,
    payload::{PayloadMap, Payloads},
    time::Timestamp,
};

#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    pub workflow: WorkflowKey,
    pub run: RunId,
    pub workflow_type: String,
    /// The queue whose workers run its code.
    pub queue: String,
    /// Status as in lists.
    pub status: RunStatus,
    pub liveness: Liveness,
    /// What will resume it; an open run without any is stranded.
    pub resume_sources: Vec<ResumeSource>,
    /// First run of the chain.
    pub first_run: RunId,
    /// The run whose history a reset copied to make this one.
    pub reset_from: Option<RunId>,
    /// Attempt number of the chain's retry policy.
    pub attempt: u32,
    /// The parent, if the run is a child.
    pub parent: Option<RunReference>,
    pub started_at: Timestamp,
    /// When its code starts, if it has not yet: start delay, retry, cron.
    pub begins_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
    /// When it times out.
    pub deadline: Option<Timestamp>,
    /// Run that continues it.
    pub next_run: Option<RunId>,
    /// Outcome, once it is closed.
    pub outcome: Option<RunOutcome>,
    pub last_event: u64,
    /// Bytes of all events.
    pub history_bytes: u64,
    /// Whether its cancellation was requested.
    pub cancel_requested: bool,
    /// Unindexed data for people.
    pub memo: PayloadMap,
    /// Indexed data for lists.
    pub search_attributes: PayloadMap,
    /// Set while its workflow task fails and is retried.
    pub trouble: Option<TaskTrouble>,
    /// What it waits for: timers, signals, conditions, retries.
    pub waits: Vec<ShownWait>,
    pub activities: Vec<ShownActivity>,
    pub children: Vec<ShownChild>,
    /// Updates without an outcome.
    pub updates: Vec<UpdateId>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TaskTrouble {
    /// Number of the next attempt.
    pub attempt: u32,
    /// When the last attempt failed.
    pub failed_at: Timestamp,
    /// When it is retried at the earliest.
    pub not_before: Option<Timestamp>,
    pub cause: TaskFailureCause,
    pub failure: Failure,
    /// Mismatch between code and history, if there is one.
    pub blocked: Option<Blocked>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShownActivity {
    pub activity: ActivityId,
    pub activity_type: String,
    /// The queue whose workers may take it.
    pub queue: String,
    /// Number of the running or next attempt, from 1.
    pub attempt: u32,
    pub phase: ShownPhase,
    /// Why the last attempt failed.
    pub last_failure: Option<Failure>,
    /// Details of the last heartbeat.
    pub heartbeat: Option<Payloads>,
    /// Whether code requested its cancellation.
    pub cancel_requested: bool,
}

/// State of a pending activity. Its worker is shown by identity: the session is a secret that would
/// let others answer in the worker's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownPhase {
    /// Waits for a worker.
    Ready { since: Timestamp },
    /// An attempt is in flight on a worker.
    Started {
        at: Timestamp,
        identity: String,
        /// Whether the worker left the attempt to be completed from outside.
        detached: bool,
    },
    /// Waits for its next attempt.
    Backoff { until: Timestamp },
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShownChild {
    pub workflow: WorkflowKey,
    pub run: RunId,
    pub workflow_type: String,
    /// Whether it is known to have started.
    pub started: bool,
}

impl Run {
    /// Status as in lists.
    pub fn shown_status(&self) -> RunStatus {
        match self.status {
            Status::Open if self.paused_with_buffer() => RunStatus::Paused,
            Status::Open if self.replay_blocked() => RunStatus::ReplayBlocked,
            Status::Open => RunStatus::Running,
            Status::Closed { how, .. } => match how {
                Close::Completed => RunStatus::Completed,
                Close::Failed => RunStatus::Failed,
                Close::TimedOut => RunStatus::TimedOut,
                Close::Cancelled => RunStatus::Cancelled,
                Close::Terminated => RunStatus::Terminated,
                Close::ContinuedAsNew => RunStatus::ContinuedAsNew,
            },
        }
    }

    pub fn closed_at(&self) -> Option<Timestamp> {
        match self.status {
            Status::Open => None,
            Status::Closed { at, .. } => Some(at),
        }
    }

    pub fn describe(&self) -> Description {
        let next_run = match self.status {
            Status::Open => None,
            Status::Closed { next_run, .. } => next_run,
        };
        Description {
            workflow: self.workflow.clone(),
            run: self.id,
            workflow_type: self.spec.workflow_type.clone(),
            queue: self.spec.queue.clone(),
            status: self.shown_status(),
            liveness: self.liveness(),
            resume_sources: self.resume_sources(),
            first_run: self.first_run,
            reset_from: self.reset_from,
            attempt: self.attempt,
            parent: self.parent.as_ref().map(|parent| parent.run.clone()),
            started_at: self.started_at,
            begins_at: self.first_task_at.filter(|_| self.open()),
            closed_at: self.closed_at(),
            deadline: self.deadline(),
            next_run,
            outcome: self.outcome.clone(),
            last_event: self.last_event,
            history_bytes: self.history_bytes,
            cancel_requested: self.cancel_requested,
            memo: self.spec.memo.clone(),
            search_attributes: self.spec.search_attributes.clone(),
            trouble: match &self.task {
                Task::Retry(retry) => Some(TaskTrouble::of(retry)),
                Task::Idle | Task::Scheduled { .. } => None,
            },
            waits: self.shown_waits(),
            activities: self
                .activities
                .values()
                .map(|activity| ShownActivity::of(activity))
                .collect(),
            children: self.shown_children(),
            updates: self.unfinished_updates(),
        }
    }

    fn shown_children(&self) -> Vec<ShownChild> {
        let shown = |child: &super::Child| ShownChild {
            workflow: child.child.workflow.clone(),
            run: child.run,
            workflow_type: child.child.spec.workflow_type.clone(),
            started: child.started,
        };
        self.children.values().map(shown).collect()
    }

    fn unfinished_updates(&self) -> Vec<UpdateId> {
        let with_event = self.updates.iter().filter(|(_, update)| !update.over());
        with_event.map(|(id, _)| id).chain(self.volatile.admitted.keys()).cloned().collect()
    }
}

impl TaskTrouble {
    fn of(retry: &Retry) -> Self {
        Self {
            attempt: retry.attempt,
            failed_at: retry.failed_at,
            not_before: retry.not_before,
            cause: retry.cause,
            failure: retry.failure.clone(),
            blocked: retry.blocked.clone(),
        }
    }
}

impl ShownActivity {
    fn of(activity: &Activity) -> Self {
        Self {
            activity: activity.spec.activity.clone(),
            activity_type: activity.spec.activity_type.clone(),
            queue: activity.spec.queue.clone(),
            attempt: activity.attempt,
            phase: ShownPhase::of(&activity.phase),
            last_failure: activity.last_failure.clone(),
            heartbeat: activity.heartbeat.clone(),
            cancel_requested: activity.cancel_requested,
        }
    }
}

impl ShownPhase {
    fn of(phase: &Phase) -> Self {
        match phase {
            Phase::Ready { since } => Self::Ready { since: *since },
            Phase::Started { at, identity, detached, session: _ } => {
                Self::Started { at: *at, identity: identity.clone(), detached: *detached }
            }
            Phase::Backoff { until } => Self::Backoff { until: *until },
        }
    }
}
