//! Activities: code with side effects that runs on a worker, with deadlines and retries. Attempts are
//! notes; history has the schedule and, at the end, the last start and the outcome.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    failure::{Failure, TimeoutKind},
    ids::{ActivityId, EventNumber, ExecutionId},
    payload::{PayloadMap, Payloads},
    retry::{RetryPolicy, RetryState},
    time::Timestamp,
};

/// Code asked for an activity.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityScheduled {
    /// What to run and how.
    pub spec: ActivitySpec,
    /// Identifies the activity over all attempts and recorded retries.
    pub execution: ExecutionId,
    /// The task whose code asked.
    pub task_completed: EventNumber,
}

/// What to run and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivitySpec {
    /// Unique among pending activities.
    pub activity: ActivityId,
    /// The activity's type.
    pub activity_type: String,
    /// The queue whose workers may take it.
    pub queue: String,
    /// Arguments.
    pub input: Payloads,
    /// Context that is passed along.
    pub header: PayloadMap,
    /// Limits the whole activity, retries included.
    pub schedule_to_close: Option<Duration>,
    /// Limits how long an attempt waits for a worker.
    pub schedule_to_start: Option<Duration>,
    /// Limits one attempt.
    pub start_to_close: Option<Duration>,
    /// Limits the silence of a running attempt.
    pub heartbeat: Option<Duration>,
    /// How failed attempts are repeated; none means a single attempt.
    pub retry: Option<RetryPolicy>,
    /// How often an attempt may reach a worker.
    pub delivery: Delivery,
    /// For a recorded retry: the execution id of the first attempt.
    pub retry_of: Option<ExecutionId>,
    /// For a recorded retry: which attempt this is, from 2; zero for the first.
    pub attempt: u32,
}

/// How often one attempt may reach a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Delivery {
    /// An attempt lost with its worker is repeated.
    #[default]
    AtLeastOnce,
    /// An attempt lost with its worker fails the activity.
    AtMostOnce,
}

/// The attempt that closed the activity began. The event's time is the close; `at` is the true start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityStarted {
    /// The event that scheduled it.
    pub scheduled: EventNumber,
    /// Which attempt.
    pub attempt: u32,
    /// When it began.
    pub at: Timestamp,
    /// The worker.
    pub identity: String,
    /// Why the attempt before it failed.
    pub last_failure: Option<Failure>,
}

/// The activity has a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityCompleted {
    /// The event that scheduled it.
    pub scheduled: EventNumber,
    /// The result.
    pub result: Payloads,
    /// The worker.
    pub identity: String,
}

/// The activity failed for good.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityFailed {
    /// The event that scheduled it.
    pub scheduled: EventNumber,
    /// Why.
    pub failure: Failure,
    /// Why it was not tried again.
    pub retry_state: RetryState,
    /// The worker.
    pub identity: String,
}

/// One of the activity's deadlines passed for good.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityTimedOut {
    /// The event that scheduled it.
    pub scheduled: EventNumber,
    /// Which deadline.
    pub kind: TimeoutKind,
    /// The failure, with the last attempt's as its cause and the last heartbeat as details.
    pub failure: Failure,
    /// Why it was not tried again.
    pub retry_state: RetryState,
}

/// Code asked for the activity to be cancelled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityCancelRequested {
    /// The event that scheduled it.
    pub scheduled: EventNumber,
    /// The task whose code asked.
    pub task_completed: EventNumber,
}

/// The activity was cancelled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityCancelled {
    /// The event that scheduled it.
    pub scheduled: EventNumber,
    /// Data for the code that asked.
    pub details: Payloads,
    /// The worker; empty if no attempt was running.
    pub identity: String,
}
