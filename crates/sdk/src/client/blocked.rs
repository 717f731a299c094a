//! A run whose code does not fit its history, as clients see it.

use abide_core::{event, ids::EventNumber};

/// How the code of a run differs from its history.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blocked {
    /// What kind of difference it is.
    pub reason: BlockedReason,
    /// What the code does at that place.
    pub expected: String,
    /// The events that history has there.
    pub recorded: Vec<String>,
    /// The number of the first of these events.
    pub at: EventNumber,
    /// The condition's key in the code, if a condition differs.
    pub expected_key: Option<String>,
    /// The condition's key in history, if a condition differs.
    pub recorded_key: Option<String>,
    /// The condition's fingerprint in the code, if a condition differs.
    pub expected_fingerprint: Option<String>,
    /// The condition's fingerprint in history, if a condition differs.
    pub recorded_fingerprint: Option<String>,
}

/// What kind of difference blocks a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockedReason {
    /// History has another step at that place.
    HistoryShape,
    /// A condition has another key or another fingerprint.
    ConditionDefinition,
    /// A recorded failure cannot be converted into an error of the code.
    FailureResolution,
}

impl From<event::Blocked> for Blocked {
    fn from(blocked: event::Blocked) -> Self {
        Self {
            reason: match blocked.reason {
                event::BlockedReason::HistoryShape => BlockedReason::HistoryShape,
                event::BlockedReason::ConditionDefinition => BlockedReason::ConditionDefinition,
                event::BlockedReason::FailureResolution => BlockedReason::FailureResolution,
            },
            expected: blocked.expected,
            recorded: blocked.recorded,
            at: blocked.at,
            expected_key: blocked.expected_key,
            recorded_key: blocked.recorded_key,
            expected_fingerprint: blocked.expected_fingerprint,
            recorded_fingerprint: blocked.recorded_fingerprint,
        }
    }
}
