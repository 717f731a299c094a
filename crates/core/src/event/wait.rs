//! Condition waits: code waits until a predicate on its own state holds. A deadline is a timer beside
//! the wait, shown as one wait.

use serde::{Deserialize, Serialize};

use super::WaitDetails;
use crate::ids::{EventNumber, TimerId, WaitId};

/// Code waits for a condition on its own state.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitOpened {
    /// The wait.
    pub spec: WaitSpec,
    /// The task whose code asked.
    pub task_completed: EventNumber,
}

/// A condition wait as code asks for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitSpec {
    /// Unique among open waits.
    pub wait: WaitId,
    /// What is waited for.
    pub condition: Condition,
    /// The timer of its deadline, which is started right after.
    pub timer: Option<TimerId>,
    /// What is shown to the person who must act.
    pub details: Option<WaitDetails>,
}

/// Identifies a condition across versions of the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// A stable name for operators.
    pub key: Option<String>,
    /// A hash of the predicate's tokens; behind a dash perhaps a second one, as older code computed it.
    pub fingerprint: Option<String>,
}

/// Code changed what people are shown about a wait, such as who may act.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitDescribed {
    /// The wait.
    pub wait: WaitId,
    /// The event that opened it.
    pub opened: EventNumber,
    /// What is shown from now on.
    pub details: WaitDetails,
}

/// The condition became true.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitSatisfied {
    /// The wait.
    pub wait: WaitId,
    /// The event that opened it.
    pub opened: EventNumber,
    /// What was waited for.
    pub condition: Condition,
}

/// The condition's deadline passed first.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitTimedOut {
    /// The wait.
    pub wait: WaitId,
    /// The event that opened it.
    pub opened: EventNumber,
    /// What was waited for.
    pub condition: Condition,
}

/// Code no longer waits for the condition.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitCancelled {
    /// The wait.
    pub wait: WaitId,
    /// The event that opened it.
    pub opened: EventNumber,
}
