//! Timers: each one records why it exists. The origin is metadata and does not affect when a timer
//! fires.

use serde::{Deserialize, Serialize};

use crate::{
    digest::Digest,
    ids::{EventNumber, ExecutionId, TimerId, WorkflowId},
    payload::{PayloadMap, map_size},
    time::Timestamp,
};

/// Code started a timer.
#[derive(Clone, Debug, PartialEq)]
pub struct TimerStarted {
    pub spec: TimerSpec,
    /// Number of the TaskCompleted event of the task that requested it.
    pub task_completed: EventNumber,
}

/// A timer as specified by workflow code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerSpec {
    /// Unique among open timers.
    pub timer: TimerId,
    /// When it fires; [`Timestamp::NEVER`] for a signal wait without deadline.
    pub fire_at: Timestamp,
    /// Why it exists. Our code always sets it; histories of older code lack it.
    pub origin: Option<Origin>,
    /// Shown to the person who must act.
    pub details: Option<WaitDetails>,
    /// Limits on reschedules by clients and operators.
    pub guards: Guards,
}

impl TimerSpec {
    /// Whether this is a signal wait without deadline: its timer never fires, and histories of code
    /// that did not record it lack it. Both conditions must hold exactly.
    pub fn optional(&self) -> bool {
        self.fire_at.is_never() && matches!(self.origin, Some(Origin::ExternalEvent { .. }))
    }
}

/// Why a timer exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    CreateTimer,
    /// A wait for a signal; an empty name waits for any.
    ExternalEvent {
        name: String,
    },
    /// The deadline of a condition wait.
    Condition {
        key: Option<String>,
        fingerprint: Option<String>,
    },
    /// The delay before a recorded activity retry.
    ActivityRetry {
        /// Execution id of the first attempt.
        execution: ExecutionId,
    },
    /// The delay before a recorded child retry.
    ChildWorkflowRetry {
        /// Workflow id of the first child.
        workflow: WorkflowId,
    },
}

/// Shown to the person who must act: plain data that lists and inboxes read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitDetails {
    pub subject: String,
    /// People who may act.
    pub actors: Vec<String>,
    pub data: PayloadMap,
    /// How to answer, if the wait is for an approval.
    pub approval: Option<Approval>,
}

impl WaitDetails {
    /// Size in bytes, for limits.
    pub fn size(&self) -> usize {
        let approval = self.approval.as_ref().map_or(0, |approval| {
            approval.request.len() + approval.update.len() + sum(&approval.choices)
        });
        self.subject.len() + sum(&self.actors) + map_size(&self.data).bytes + approval
    }
}

/// Size of a list of texts. An empty text counts too, because a list of them is not free.
fn sum(texts: &[String]) -> usize {
    texts.iter().map(|text| text.len() + 1).sum()
}

/// How an approval reaches the run: plain data from which an inbox can answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Id of the request within the run.
    pub request: String,
    /// Name of the update that takes the answer.
    pub update: String,
    /// Possible answers.
    pub choices: Vec<String>,
}

/// Limits on reschedules by clients and operators. They do not apply to workflow code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guards {
    /// Latest due time.
    pub not_after: Option<Timestamp>,
    /// Maximum number of reschedules.
    pub max_extensions: Option<u32>,
}

/// The timer's due time was changed.
#[derive(Clone, Debug, PartialEq)]
pub struct TimerRescheduled {
    pub timer: TimerId,
    pub fire_at: Timestamp,
    pub by: Mover,
}

/// Who moved a due time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mover {
    Code,
    /// A client or an operator.
    Outside {
        identity: String,
        /// Idempotency key of the request.
        key: Option<crate::ids::Key>,
        /// When the request was received.
        received_at: Timestamp,
        /// Digest of the time that the request with this key asked for. Records of older code lack
        /// it.
        asked: Digest,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct TimerFired {
    pub timer: TimerId,
    /// Number of the TimerStarted event.
    pub started: EventNumber,
    /// Due time at which it fired.
    pub fire_at: Timestamp,
}

/// Code no longer needs the timer.
#[derive(Clone, Debug, PartialEq)]
pub struct TimerCancelled {
    pub timer: TimerId,
    /// Number of the TimerStarted event.
    pub started: EventNumber,
}
