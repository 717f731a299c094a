//! Timers: every one says why it exists. The origin is metadata and never changes when a timer fires.

use serde::{Deserialize, Serialize};

use crate::{
    ids::{EventNumber, ExecutionId, TimerId, WorkflowId},
    payload::{PayloadMap, map_size},
    time::Timestamp,
};

/// Code asked to be woken at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimerStarted {
    /// The timer.
    pub spec: TimerSpec,
    /// The task whose code asked.
    pub task_completed: EventNumber,
}

/// A timer as code asks for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerSpec {
    /// Unique among open timers.
    pub timer: TimerId,
    /// When it is due; [`Timestamp::NEVER`] for a signal wait without deadline.
    pub fire_at: Timestamp,
    /// Why it exists. Always set by us; absent in histories of older code.
    pub origin: Option<Origin>,
    /// What is shown to the person who must act.
    pub details: Option<WaitDetails>,
    /// What clients and operators may do to the due time.
    pub guards: Guards,
}

impl TimerSpec {
    /// A signal wait without deadline: its timer never needs to fire and may be absent from
    /// histories of code that did not record it. Both conditions, exactly, and nothing else.
    pub fn optional(&self) -> bool {
        self.fire_at.never() && matches!(self.origin, Some(Origin::ExternalEvent { .. }))
    }
}

/// Why a timer exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// A sleep.
    CreateTimer,
    /// A wait for a signal; an empty name waits for any.
    ExternalEvent {
        /// The signal's name.
        name: String,
    },
    /// The deadline of a condition wait.
    Condition {
        /// The condition's key.
        key: Option<String>,
        /// The condition's fingerprint.
        fingerprint: Option<String>,
    },
    /// The delay before a recorded activity retry.
    ActivityRetry {
        /// The execution id of the first attempt.
        execution: ExecutionId,
    },
    /// The delay before a recorded child retry.
    ChildWorkflowRetry {
        /// The first child's workflow id.
        workflow: WorkflowId,
    },
}

/// What is shown to the person who must act: plain data that lists and inboxes read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitDetails {
    /// What it is about.
    pub subject: String,
    /// Who may act.
    pub actors: Vec<String>,
    /// Anything else.
    pub data: PayloadMap,
    /// How it is decided, if it is a person's decision that is waited for.
    pub approval: Option<Approval>,
}

impl WaitDetails {
    /// Bytes of everything in it.
    pub fn size(&self) -> usize {
        let approval = self.approval.as_ref().map_or(0, |approval| {
            approval.request.len() + approval.update.len() + sum(&approval.choices)
        });
        self.subject.len() + sum(&self.actors) + map_size(&self.data) + approval
    }
}

/// Bytes of a list of texts. An empty one counts too: a list of them is not free.
fn sum(texts: &[String]) -> usize {
    texts.iter().map(|text| text.len() + 1).sum()
}

/// How a person's decision reaches the run: plain data, from which an inbox can decide.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The request's id within the run.
    pub request: String,
    /// The update that takes the decision.
    pub update: String,
    /// What can be decided.
    pub choices: Vec<String>,
}

/// What clients and operators may do to a due time. Code itself is not bound by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guards {
    /// The due time may not be moved past this.
    pub not_after: Option<Timestamp>,
    /// How often it may be moved.
    pub max_extensions: Option<u32>,
}

/// The timer's due time was moved.
#[derive(Clone, Debug, PartialEq)]
pub struct TimerRescheduled {
    /// The timer.
    pub timer: TimerId,
    /// The new due time.
    pub fire_at: Timestamp,
    /// Who moved it.
    pub by: Mover,
}

/// Who moved a due time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mover {
    /// Workflow code.
    Code,
    /// A client or an operator.
    Outside {
        /// Who it was.
        identity: String,
        /// Idempotency key of the request.
        key: Option<crate::ids::Key>,
        /// When the request was received.
        received_at: Timestamp,
    },
}

/// The timer's due time came.
#[derive(Clone, Debug, PartialEq)]
pub struct TimerFired {
    /// The timer.
    pub timer: TimerId,
    /// The event that started it.
    pub started: EventNumber,
    /// The due time that came.
    pub fire_at: Timestamp,
}

/// Code no longer needs the timer.
#[derive(Clone, Debug, PartialEq)]
pub struct TimerCancelled {
    /// The timer.
    pub timer: TimerId,
    /// The event that started it.
    pub started: EventNumber,
}
