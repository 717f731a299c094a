//! Condition waits: code waits until a predicate on its own state holds. A deadline is a separate
//! timer; people see both as one wait.

use serde::{Deserialize, Serialize};

use super::WaitDetails;
use crate::ids::{EventNumber, TimerId, WaitId};

/// Code waits for a condition on its own state.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitOpened {
    pub spec: WaitSpec,
    /// Number of the TaskCompleted event of the task that requested it.
    pub task_completed: EventNumber,
}

/// A condition wait as specified by workflow code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitSpec {
    /// Unique among open waits.
    pub wait: WaitId,
    pub condition: Condition,
    /// Timer of its deadline, which is started right after.
    pub timer: Option<TimerId>,
    /// Shown to the person who must act.
    pub details: Option<WaitDetails>,
}

/// Identifies a condition across versions of the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Stable name for operators.
    pub key: Option<String>,
    /// Hash of the predicate's tokens, optionally followed by a dash and the hash that older code
    /// computed.
    pub fingerprint: Option<String>,
}

/// Code changed what people see about a wait, such as who may act.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitDescribed {
    pub wait: WaitId,
    /// Number of the WaitOpened event.
    pub opened: EventNumber,
    pub details: WaitDetails,
}

/// The condition became true.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitSatisfied {
    pub wait: WaitId,
    /// Number of the WaitOpened event.
    pub opened: EventNumber,
    pub condition: Condition,
}

/// The condition's deadline passed first.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitTimedOut {
    pub wait: WaitId,
    /// Number of the WaitOpened event.
    pub opened: EventNumber,
    pub condition: Condition,
}

/// Code no longer waits for the condition.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitCancelled {
    pub wait: WaitId,
    /// Number of the WaitOpened event.
    pub opened: EventNumber,
}
