//! What a run does to another workflow. An effect stays in the source's outbox until its answer is
//! recorded; the target remembers the answer, so that a repeated delivery changes nothing.

use serde::{Deserialize, Serialize};

use crate::{
    event::{CancelMode, ChildSpec, DeliveryFailure, Parent, RunReference, Target},
    failure::Failure,
    ids::{EventNumber, RunId},
    payload::{PayloadMap, Payloads},
    retry::RetryState,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    pub target: Target,
    pub action: Action,
    /// Event that waits for the answer, if any does.
    pub initiated: Option<EventNumber>,
}

/// What an effect does to its target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Action {
    StartChild(Box<StartChild>),
    Signal {
        name: String,
        input: Payloads,
        /// Context propagated to the receiver.
        header: PayloadMap,
    },
    /// Requests cancellation, or terminates.
    Cancel {
        mode: CancelMode,
        reason: String,
    },
    /// Notifies a parent that its child has closed.
    ChildClosed(ChildClosed),
    /// Makes a run that was made by a reset the parent of a child that it took over.
    AdoptChild(AdoptChild),
}

/// Makes another run of the parent's workflow the parent of a child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdoptChild {
    /// First run of the child.
    pub run: RunId,
    /// The new parent: the source of the effect.
    pub parent: Parent,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartChild {
    /// Run id of the child.
    pub run: RunId,
    pub child: ChildSpec,
    pub parent: Parent,
    pub root: RunReference,
}

/// Notifies a parent of the close of its child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildClosed {
    /// Number of the ChildInitiated event in the parent's history.
    pub initiated: EventNumber,
    /// First run of the child: proves to the parent that the child has started.
    pub first_run: RunId,
    pub run: RunId,
    pub outcome: RunOutcome,
}

/// Outcome of a run that no other run continues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RunOutcome {
    Completed(Payloads),
    Failed {
        failure: Failure,
        /// Why no retry follows.
        retry_state: RetryState,
    },
    TimedOut {
        /// Why no retry follows.
        retry_state: RetryState,
    },
    /// The run's code ended it as cancelled.
    Cancelled(Payloads),
    Terminated {
        reason: String,
    },
}

/// Answer of the target to an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EffectOutcome {
    Applied,
    Failed(DeliveryFailure),
}
