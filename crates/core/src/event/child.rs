//! Effects on other workflows: children, external signals and cancel requests. Code initiates each
//! one, the outbox delivers it, and a result event answers it.

use serde::{Deserialize, Serialize};

use super::RunSpec;
use crate::{
    failure::Failure,
    ids::{EventNumber, RunId, WorkflowId, WorkflowKey},
    payload::{PayloadMap, Payloads},
    retry::{RetryPolicy, RetryState},
};

/// Code started a child.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildInitiated {
    pub child: ChildSpec,
    /// Run id of the child, derived from this run and this event.
    pub run: RunId,
    /// Number of the TaskCompleted event of the task that requested it.
    pub task_completed: EventNumber,
}

/// A child as specified by workflow code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildSpec {
    pub workflow: WorkflowKey,
    pub spec: RunSpec,
    /// What happens to the child if this run closes first.
    pub parent_close: ParentClosePolicy,
    /// What happens if the workflow id was used before.
    pub reuse: ReusePolicy,
    /// For a recorded retry: workflow id of the first child.
    pub retry_of: Option<WorkflowId>,
    /// For a recorded retry: number of the attempt, from 2; zero for the first.
    pub attempt: u32,
    /// Policy of recorded retries. The parent makes them, so the child knows nothing of it.
    pub recorded_retry: Option<RetryPolicy>,
}

/// What happens to a child if its parent closes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParentClosePolicy {
    #[default]
    Terminate,
    Abandon,
    /// The child is asked to cancel itself.
    RequestCancel,
}

/// Whether the id of a closed workflow may be used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReusePolicy {
    #[default]
    Allow,
    /// Only if the last run did not complete.
    AllowIfFailed,
    Reject,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ChildStarted {
    /// Number of the event that initiated it.
    pub initiated: EventNumber,
    pub run: RunId,
}

/// The child could not be started.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildStartFailed {
    /// Number of the event that initiated it.
    pub initiated: EventNumber,
    pub cause: DeliveryFailure,
}

/// The child completed with a result.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildCompleted {
    /// Number of the event that initiated it.
    pub initiated: EventNumber,
    /// The run that closed: the last of the child's chain.
    pub run: RunId,
    pub result: Payloads,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ChildFailed {
    /// Number of the event that initiated it.
    pub initiated: EventNumber,
    /// The run that closed: the last of the child's chain.
    pub run: RunId,
    pub failure: Failure,
    /// Why no retry follows.
    pub retry_state: RetryState,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ChildTimedOut {
    /// Number of the event that initiated it.
    pub initiated: EventNumber,
    /// The run that closed: the last of the child's chain.
    pub run: RunId,
    /// Why no retry follows.
    pub retry_state: RetryState,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ChildCancelled {
    /// Number of the event that initiated it.
    pub initiated: EventNumber,
    /// The run that closed: the last of the child's chain.
    pub run: RunId,
    /// Data that the child's code returned.
    pub details: Payloads,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ChildTerminated {
    /// Number of the event that initiated it.
    pub initiated: EventNumber,
    /// The run that closed: the last of the child's chain.
    pub run: RunId,
    pub reason: String,
}

/// Run of another workflow that an effect is meant for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub workflow: WorkflowKey,
    /// This run; `None` means the current one.
    pub run: Option<RunId>,
    /// Only if it is this run's own child, started by this event; also matches later runs of that
    /// child's chain.
    pub child: Option<EventNumber>,
}

/// Code sent a signal to another workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalSignalInitiated {
    pub target: Target,
    pub name: String,
    pub input: Payloads,
    /// Context propagated to the receiver.
    pub header: PayloadMap,
    /// Number of the TaskCompleted event of the task that requested it.
    pub task_completed: EventNumber,
}

/// The signal was delivered to the other workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalSignalDelivered {
    /// Number of the event that initiated it.
    pub initiated: EventNumber,
}

/// The signal could not be delivered.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalSignalFailed {
    /// Number of the event that initiated it.
    pub initiated: EventNumber,
    pub cause: DeliveryFailure,
}

/// How another workflow is ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CancelMode {
    /// Asks it to cancel itself.
    #[default]
    Request,
    /// Ends it immediately.
    Terminate,
}

/// Code requested cancellation of another workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalCancelInitiated {
    pub target: Target,
    pub mode: CancelMode,
    pub reason: String,
    /// Number of the TaskCompleted event of the task that requested it.
    pub task_completed: EventNumber,
}

/// The cancel request was delivered to the other workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalCancelDelivered {
    /// Number of the event that initiated it.
    pub initiated: EventNumber,
}

/// The cancel request could not be delivered.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalCancelFailed {
    /// Number of the event that initiated it.
    pub initiated: EventNumber,
    pub cause: DeliveryFailure,
}

/// Why an effect could not reach its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeliveryFailure {
    /// The workflow or run does not exist.
    NotFound,
    /// The run is closed.
    Closed,
    /// A workflow of that id already exists.
    AlreadyExists,
    /// The target refused it because of a limit.
    LimitExceeded,
    /// The namespace does not exist.
    NamespaceNotFound,
    /// The target's namespace does not accept commands from the namespace of the source.
    NamespaceRefused,
    /// The target's server refused it, and its log says why: its store does not take a child's first writes,
    /// or the source cannot have asked for this.
    Refused,
}
