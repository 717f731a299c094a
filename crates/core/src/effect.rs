//! What a run does to another workflow. An effect is a row in the source's outbox until its answer is
//! recorded; the target remembers the answer, so that a repeat changes nothing.

use serde::{Deserialize, Serialize};

use crate::{
    event::{CancelMode, ChildSpec, DeliveryFailure, Parent, RunReference, Target},
    failure::Failure,
    ids::{EventNumber, RunId},
    payload::{PayloadMap, Payloads},
    retry::RetryState,
};

/// One effect on another workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// On which workflow.
    pub target: Target,
    /// What is done to it.
    pub action: Action,
    /// The event that waits for the answer; none if nobody does.
    pub initiated: Option<EventNumber>,
}

/// What is done to another workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// A child is started.
    StartChild(Box<StartChild>),
    /// A signal is sent.
    Signal {
        /// The signal's name.
        name: String,
        /// Arguments.
        input: Payloads,
        /// Context that is passed along.
        header: PayloadMap,
    },
    /// It is made to end.
    Cancel {
        /// How.
        mode: CancelMode,
        /// Why.
        reason: String,
    },
    /// A parent is told that its child closed.
    ChildClosed(ChildClosed),
}

/// The start of a child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartChild {
    /// The child's run id.
    pub run: RunId,
    /// What it runs.
    pub child: ChildSpec,
    /// Who started it.
    pub parent: Parent,
    /// The topmost ancestor.
    pub root: RunReference,
}

/// The close of a child, for its parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildClosed {
    /// The event in the parent's history that asked for the child.
    pub initiated: EventNumber,
    /// The first run of the child: proves to the parent that the child did start.
    pub first_run: RunId,
    /// The run that closed.
    pub run: RunId,
    /// How it closed.
    pub outcome: RunOutcome,
}

/// What came of a run that no other run follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RunOutcome {
    /// With a result.
    Completed(Payloads),
    /// With a failure.
    Failed {
        /// Why.
        failure: Failure,
        /// Why it was not tried again.
        retry_state: RetryState,
    },
    /// Its time was up.
    TimedOut {
        /// Why it was not tried again.
        retry_state: RetryState,
    },
    /// It cancelled itself.
    Cancelled(Payloads),
    /// It was ended from outside.
    Terminated {
        /// Why.
        reason: String,
    },
}

/// The answer that an effect gets from its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It took effect.
    Applied,
    /// It did not.
    Failed(DeliveryFailure),
}
