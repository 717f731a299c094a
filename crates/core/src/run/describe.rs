//! A run as people and programs look at it: what it is, how it stands, and all that it waits for.

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

/// A run as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The workflow.
    pub workflow: WorkflowKey,
    /// The run.
    pub run: RunId,
    /// The workflow's type.
    pub workflow_type: String,
    /// The queue whose workers run its code.
    pub queue: String,
    /// How it stands, as lists show it.
    pub status: RunStatus,
    /// What it is doing.
    pub liveness: Liveness,
    /// What will make it go on; an open run without any is stranded.
    pub resume_sources: Vec<ResumeSource>,
    /// First run of the chain.
    pub first_run: RunId,
    /// Which attempt of the chain's retry policy.
    pub attempt: u32,
    /// The parent, if the run is a child.
    pub parent: Option<RunReference>,
    /// When it started.
    pub started_at: Timestamp,
    /// When its code begins, if it has not: start delay, retry, cron.
    pub begins_at: Option<Timestamp>,
    /// When it closed.
    pub closed_at: Option<Timestamp>,
    /// When its time is up.
    pub deadline: Option<Timestamp>,
    /// The run that follows it.
    pub next_run: Option<RunId>,
    /// What came of it.
    pub outcome: Option<RunOutcome>,
    /// Number of the last event.
    pub last_event: u64,
    /// Bytes of all events.
    pub history_bytes: u64,
    /// Somebody asked the run to cancel itself.
    pub cancel_requested: bool,
    /// Unindexed facts for people.
    pub memo: PayloadMap,
    /// Indexed facts for lists.
    pub search_attributes: PayloadMap,
    /// Its workflow task failed and is to be repeated.
    pub trouble: Option<TaskTrouble>,
    /// What it waits for: timers, signals, conditions, next attempts.
    pub waits: Vec<ShownWait>,
    /// Its pending activities.
    pub activities: Vec<ShownActivity>,
    /// Its pending children.
    pub children: Vec<ShownChild>,
    /// Updates without an outcome.
    pub updates: Vec<UpdateId>,
}

/// A workflow task that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskTrouble {
    /// Number of the next attempt.
    pub attempt: u32,
    /// When the last attempt failed.
    pub failed_at: Timestamp,
    /// It is not tried again before this.
    pub not_before: Option<Timestamp>,
    /// What went wrong.
    pub cause: TaskFailureCause,
    /// Details.
    pub failure: Failure,
    /// How code and history differ, if they do.
    pub blocked: Option<Blocked>,
}

/// A pending activity.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownActivity {
    /// The activity.
    pub activity: ActivityId,
    /// Its type.
    pub activity_type: String,
    /// The queue whose workers may take it.
    pub queue: String,
    /// Which attempt runs or comes next, from 1.
    pub attempt: u32,
    /// Where it stands.
    pub phase: ShownPhase,
    /// Why the last attempt failed.
    pub last_failure: Option<Failure>,
    /// Details of the last heartbeat.
    pub heartbeat: Option<Payloads>,
    /// Code asked for it to be cancelled.
    pub cancel_requested: bool,
}

/// Where a pending activity stands. Its worker is shown by identity: the session is a secret, by which
/// others could answer in the worker's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownPhase {
    /// It waits for a worker.
    Ready {
        /// Since when.
        since: Timestamp,
    },
    /// A worker has it.
    Started {
        /// Since when.
        at: Timestamp,
        /// The worker's identity.
        identity: String,
        /// The worker has left the attempt to somebody else.
        detached: bool,
    },
    /// It waits for its next attempt.
    Backoff {
        /// Until when.
        until: Timestamp,
    },
}

/// A pending child.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownChild {
    /// The child's workflow.
    pub workflow: WorkflowKey,
    /// The child's run.
    pub run: RunId,
    /// The child's type.
    pub workflow_type: String,
    /// It is known to run.
    pub started: bool,
}

impl Run {
    /// How the run stands, as lists show it.
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

    /// When the run closed.
    pub fn closed_at(&self) -> Option<Timestamp> {
        match self.status {
            Status::Open => None,
            Status::Closed { at, .. } => Some(at),
        }
    }

    /// The run as it is shown.
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
