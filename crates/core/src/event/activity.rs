//! Activities: code with side effects that runs on a worker, with deadlines and retries. Attempts
//! are notes; history holds the schedule and, at the end, the last start and the outcome.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    failure::{Failure, TimeoutKind},
    ids::{ActivityId, EventNumber, ExecutionId},
    payload::{PayloadMap, Payloads},
    retry::{RetryPolicy, RetryState},
    time::Timestamp,
};

/// Code scheduled an activity.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityScheduled {
    /// What to run and how.
    pub spec: ActivitySpec,
    /// Identifies the activity across all attempts and recorded retries.
    pub execution: ExecutionId,
    /// Number of the TaskCompleted event of the task that requested it.
    pub task_completed: EventNumber,
}

/// What to run and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivitySpec {
    /// Unique among pending activities.
    pub activity: ActivityId,
    pub activity_type: String,
    /// The queue whose workers may take it.
    pub queue: String,
    pub input: Payloads,
    /// Context propagated to the receiver.
    pub header: PayloadMap,
    /// Limits the whole activity, retries included.
    pub schedule_to_close: Option<Duration>,
    /// Limits how long an attempt waits for a worker.
    pub schedule_to_start: Option<Duration>,
    /// Limits one attempt.
    pub start_to_close: Option<Duration>,
    /// Limits the time between two heartbeats of a running attempt.
    pub heartbeat: Option<Duration>,
    /// Policy for failed attempts; `None` means a single attempt.
    pub retry: Option<RetryPolicy>,
    /// How many times one attempt may reach a worker.
    pub delivery: Delivery,
    /// For a recorded retry: execution id of the first attempt.
    pub retry_of: Option<ExecutionId>,
    /// For a recorded retry: number of the attempt, from 2; zero for the first.
    pub attempt: u32,
}

/// How many times one attempt may reach a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Delivery {
    /// An attempt that is lost with its worker is repeated.
    #[default]
    AtLeastOnce,
    /// An attempt that is lost with its worker fails the activity.
    AtMostOnce,
}

/// Start of the attempt that closed the activity. The event has the time of the close; `at` is the
/// time of the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityStarted {
    /// Number of the ActivityScheduled event.
    pub scheduled: EventNumber,
    pub attempt: u32,
    pub at: Timestamp,
    pub identity: String,
    /// Failure of the previous attempt.
    pub last_failure: Option<Failure>,
}

/// The activity completed with a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityCompleted {
    /// Number of the ActivityScheduled event.
    pub scheduled: EventNumber,
    pub result: Payloads,
    pub identity: String,
}

/// The activity failed, and no retry follows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityFailed {
    /// Number of the ActivityScheduled event.
    pub scheduled: EventNumber,
    pub failure: Failure,
    /// Why no retry follows.
    pub retry_state: RetryState,
    pub identity: String,
}

/// A deadline of the activity passed, and no retry follows.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityTimedOut {
    /// Number of the ActivityScheduled event.
    pub scheduled: EventNumber,
    pub kind: TimeoutKind,
    /// The failure, with that of the last attempt as its cause and the last heartbeat as details.
    pub failure: Failure,
    /// Why no retry follows.
    pub retry_state: RetryState,
}

/// Code requested cancellation of the activity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityCancelRequested {
    /// Number of the ActivityScheduled event.
    pub scheduled: EventNumber,
    /// Number of the TaskCompleted event of the task that requested it.
    pub task_completed: EventNumber,
}

/// The activity was cancelled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityCancelled {
    /// Number of the ActivityScheduled event.
    pub scheduled: EventNumber,
    /// Data for the code that requested it.
    pub details: Payloads,
    /// Worker that ran the attempt; empty if none was running.
    pub identity: String,
}
