//! Workflow tasks.

use super::table::{enumerations, messages};
use crate::event::{
    Blocked, BlockedReason, Flag, TaskCompleted, TaskFailed, TaskFailureCause, TaskScheduled,
    TaskStarted, TaskTimedOut,
};

messages! {
    TaskScheduled { queue, attempt, timeout }
    TaskStarted { scheduled, start, identity, history_bytes, suggest_continue_as_new }
    TaskCompleted { scheduled, started, identity, build, flags, sdk_metadata }
    TaskFailed { scheduled, started, cause, failure, identity, build, blocked }
    TaskTimedOut { scheduled, started }
    Blocked {
        reason,
        expected,
        recorded,
        at,
        expected_key,
        recorded_key,
        expected_fingerprint,
        recorded_fingerprint,
    }
}

enumerations! {
    Flag { OptionalTimers, HistoryOrder }
    TaskFailureCause { WorkerFailure, ReplayBlocked, BadCommand, UnseenInput, Closed, Reset }
    BlockedReason { HistoryShape, ConditionDefinition, FailureResolution }
}
