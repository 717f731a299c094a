//! Effects on other workflows: children, external signals and cancel requests. Each is initiated by
//! code, delivered through the outbox, and answered by a result event.

use serde::{Deserialize, Serialize};

use super::RunSpec;
use crate::{
    failure::Failure,
    ids::{EventNumber, RunId, WorkflowId, WorkflowKey},
    payload::{PayloadMap, Payloads},
    retry::RetryState,
};

/// Code asked for a child.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildInitiated {
    /// The child.
    pub child: ChildSpec,
    /// The child's run id, derived from this run and this event.
    pub run: RunId,
    /// The task whose code asked.
    pub task_completed: EventNumber,
}

/// A child as code asks for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildSpec {
    /// The child's workflow id.
    pub workflow: WorkflowKey,
    /// What it runs.
    pub spec: RunSpec,
    /// What happens to the child when this run closes first.
    pub parent_close: ParentClosePolicy,
    /// What happens if the workflow id was used before.
    pub reuse: ReusePolicy,
    /// For a recorded retry: the first child's workflow id.
    pub retry_of: Option<WorkflowId>,
}

/// What happens to a child when its parent closes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParentClosePolicy {
    /// It is terminated.
    #[default]
    Terminate,
    /// It goes on.
    Abandon,
    /// It is asked to cancel itself.
    RequestCancel,
}

/// Whether a closed workflow's id may be used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReusePolicy {
    /// Yes.
    #[default]
    Allow,
    /// Only if the last run did not complete.
    AllowIfFailed,
    /// No.
    Reject,
}

/// The child runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildStarted {
    /// The event that asked for it.
    pub initiated: EventNumber,
    /// The child's run.
    pub run: RunId,
}

/// The child could not be started.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildStartFailed {
    /// The event that asked for it.
    pub initiated: EventNumber,
    /// Why.
    pub cause: DeliveryFailure,
}

/// The child has a result.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildCompleted {
    /// The event that asked for it.
    pub initiated: EventNumber,
    /// The run that closed: the last of the child's chain.
    pub run: RunId,
    /// The result.
    pub result: Payloads,
}

/// The child failed.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildFailed {
    /// The event that asked for it.
    pub initiated: EventNumber,
    /// The run that closed: the last of the child's chain.
    pub run: RunId,
    /// Why.
    pub failure: Failure,
    /// Why it was not tried again.
    pub retry_state: RetryState,
}

/// The child's time was up.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildTimedOut {
    /// The event that asked for it.
    pub initiated: EventNumber,
    /// The run that closed: the last of the child's chain.
    pub run: RunId,
    /// Why it was not tried again.
    pub retry_state: RetryState,
}

/// The child cancelled itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildCancelled {
    /// The event that asked for it.
    pub initiated: EventNumber,
    /// The run that closed: the last of the child's chain.
    pub run: RunId,
    /// Data for whoever asked.
    pub details: Payloads,
}

/// The child was terminated.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildTerminated {
    /// The event that asked for it.
    pub initiated: EventNumber,
    /// The run that closed: the last of the child's chain.
    pub run: RunId,
    /// Why.
    pub reason: String,
}

/// Which run of another workflow an effect is meant for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The workflow.
    pub workflow: WorkflowKey,
    /// This run; none means the current one.
    pub run: Option<RunId>,
    /// Only if it is this run's own child, started by this event; its chain is followed.
    pub child: Option<EventNumber>,
}

/// Code asked to signal another workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalSignalInitiated {
    /// Whom.
    pub target: Target,
    /// The signal's name.
    pub name: String,
    /// Arguments.
    pub input: Payloads,
    /// Context that is passed along.
    pub header: PayloadMap,
    /// The task whose code asked.
    pub task_completed: EventNumber,
}

/// The other workflow has the signal.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalSignalDelivered {
    /// The event that asked for it.
    pub initiated: EventNumber,
}

/// The other workflow could not be signalled.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalSignalFailed {
    /// The event that asked for it.
    pub initiated: EventNumber,
    /// Why.
    pub cause: DeliveryFailure,
}

/// How another workflow is made to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CancelMode {
    /// It is asked to cancel itself.
    #[default]
    Request,
    /// It is ended without being asked.
    Terminate,
}

/// Code asked to cancel another workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalCancelInitiated {
    /// Whom.
    pub target: Target,
    /// How.
    pub mode: CancelMode,
    /// Why.
    pub reason: String,
    /// The task whose code asked.
    pub task_completed: EventNumber,
}

/// The other workflow has the request.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalCancelDelivered {
    /// The event that asked for it.
    pub initiated: EventNumber,
}

/// The other workflow could not be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalCancelFailed {
    /// The event that asked for it.
    pub initiated: EventNumber,
    /// Why.
    pub cause: DeliveryFailure,
}

/// Why an effect could not reach its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeliveryFailure {
    /// There is no such workflow or run.
    NotFound,
    /// The run is closed.
    Closed,
    /// A workflow of that id exists already.
    AlreadyExists,
    /// The target refused it for a limit.
    LimitExceeded,
    /// The namespace does not exist.
    NamespaceNotFound,
    /// The target's namespace does not accept commands from the namespace of the source.
    NamespaceRefused,
    /// The target's server refused it, and its log says why: its store does not take a child's first writes,
    /// or the source cannot have asked for this.
    Refused,
}
