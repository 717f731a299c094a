//! Events of a run as a whole: start, the ways it closes, cancel request, pause.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    digest::Digest,
    failure::Failure,
    ids::{EventNumber, Key, NamespaceId, RunId, UpdateId, WorkflowId, WorkflowKey},
    payload::{PayloadMap, Payloads},
    retry::{RetryPolicy, RetryState},
    schedule::ScheduleState,
    time::Timestamp,
};

/// What to run and how: shared by a start, a child and the next run of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    pub workflow_type: String,
    /// The queue whose workers run its code.
    pub queue: String,
    pub input: Payloads,
    /// Context propagated to the run.
    pub header: PayloadMap,
    /// Limits the whole chain of runs.
    pub execution_timeout: Option<Duration>,
    /// Limits this run.
    pub run_timeout: Option<Duration>,
    /// Limits one workflow task.
    pub task_timeout: Option<Duration>,
    /// Starts a new run when one fails.
    pub retry: Option<RetryPolicy>,
    /// Starts a new run at each of these times.
    pub cron: Option<String>,
    /// Unindexed data for people.
    pub memo: PayloadMap,
    /// Indexed data for lists.
    pub search_attributes: PayloadMap,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RunStarted {
    pub namespace: NamespaceId,
    pub workflow: WorkflowId,
    pub run: RunId,
    /// Number of the run among the runs of its workflow id.
    pub ordinal: u64,
    /// What to run and how.
    pub spec: RunSpec,
    pub identity: String,
    /// Idempotency key of the start.
    pub key: Option<Key>,
    /// First run of the chain: equal to `run` unless the run continues another.
    pub first_run: RunId,
    /// Run whose random seed code sees: unchanged by resets.
    pub original_run: RunId,
    /// Previous run of the chain.
    pub previous: Option<PreviousRun>,
    /// Attempt number of the chain's retry policy, from 1.
    pub attempt: u32,
    /// When the whole chain times out.
    pub expires_at: Option<Timestamp>,
    /// When the first task is scheduled, if not immediately: start delay, retry, cron.
    pub first_task_at: Option<Timestamp>,
    /// The parent, if the run is a child.
    pub parent: Option<Parent>,
    /// The topmost ancestor.
    pub root: Option<RunReference>,
    /// Keys of the terminations of earlier runs of the workflow id, oldest first: a repeat that names
    /// no run must not end this one.
    pub terminate_keys: Vec<Key>,
    /// Keys of the resets of earlier runs of the workflow id, likewise.
    pub reset_keys: Vec<Key>,
    /// Set if a reset made the run.
    pub reset: Option<ResetFrom>,
    /// The schedule that the run is, if it is one.
    pub schedule: Option<Box<ScheduleState>>,
}

/// How a reset made a run: it begins with the history of another one, up to a workflow task.
#[derive(Clone, Debug, PartialEq)]
pub struct ResetFrom {
    /// The run whose history was copied, with the keys that it knows.
    pub base: PreviousRun,
    /// Number of the last copied event.
    pub copied: EventNumber,
    /// When the run was reset: its timeouts count from here.
    pub at: Timestamp,
    pub reason: String,
    /// Idempotency key of the reset.
    pub key: Option<Key>,
}

/// What a reset did to the run that it copied.
#[derive(Clone, Debug, PartialEq)]
pub struct ResetTo {
    /// The run that goes on.
    pub run: RunId,
    /// Number of the last copied event.
    pub copied: EventNumber,
    /// Idempotency key of the reset.
    pub key: Option<Key>,
}

/// How a run continues another one of the same workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreviousRun {
    pub run: RunId,
    /// Why this run was started.
    pub initiator: Initiator,
    /// For a retry or a cron run: failure of the previous run.
    pub failure: Option<Failure>,
    /// The last result of the chain, for cron.
    pub last_result: Option<Payloads>,
    /// Keys of signals that the chain has taken, to recognise repeats.
    pub signal_keys: Vec<Key>,
    /// Keys of reschedules, likewise. Each run numbers its timers from the start.
    pub reschedule_keys: Vec<Key>,
    /// Completed updates and their runs, so that a repeat gets the same outcome.
    pub completed_updates: Vec<CompletedUpdate>,
    pub cancel_keys: Vec<Key>,
    pub pause_keys: Vec<Key>,
    pub unpause_keys: Vec<Key>,
    /// Digests of the signals with those keys, in the same order; empty in logs of older versions.
    pub signal_digests: Vec<Digest>,
}

/// Where to find the outcome of an update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedUpdate {
    pub update: UpdateId,
    /// Run that completed it.
    pub run: RunId,
    /// Digest of the request.
    pub asked: Digest,
}

/// Why a run continues another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Initiator {
    /// Code continued as new.
    ContinueAsNew,
    Retry,
    Cron,
    /// An operator reset the workflow.
    Reset,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    pub run: RunReference,
    /// Number of the ChildInitiated event in the parent's history.
    pub initiated: EventNumber,
    /// Number of that run among the runs of its workflow id; zero in logs of older versions. If the
    /// parent is reset, the run with the highest is the parent.
    pub ordinal: u64,
}

/// A run and its workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReference {
    pub workflow: WorkflowKey,
    pub run: RunId,
}

/// The run completed with a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCompleted {
    pub result: Payloads,
    /// The next run of the chain, for cron.
    pub next_run: Option<RunId>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RunFailed {
    pub failure: Failure,
    /// Whether a retry follows, or why not.
    pub retry_state: RetryState,
    /// The next run of the chain.
    pub next_run: Option<RunId>,
}

/// The run timed out.
#[derive(Clone, Debug, PartialEq)]
pub struct RunTimedOut {
    /// Whether a retry follows, or why not.
    pub retry_state: RetryState,
    /// The next run of the chain.
    pub next_run: Option<RunId>,
}

/// Cancellation of the run was requested.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCancelRequested {
    pub reason: String,
    pub identity: String,
    /// Idempotency key of the request.
    pub key: Option<Key>,
    /// Run that sent the request, if it came from one.
    pub source: Option<RunReference>,
    /// When the request was received.
    pub received_at: Timestamp,
}

/// The run's code ended it as cancelled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCancelled {
    /// Data for the requester.
    pub details: Payloads,
}

/// The run was terminated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTerminated {
    pub reason: String,
    pub identity: String,
    /// Data for the record.
    pub details: Payloads,
    /// Idempotency key of the request.
    pub key: Option<Key>,
    /// Set if a reset ended the run.
    pub reset: Option<ResetTo>,
}

/// The run closed and continues in a new one.
#[derive(Clone, Debug, PartialEq)]
pub struct RunContinuedAsNew {
    pub next_run: RunId,
    pub spec: RunSpec,
    /// Signals of this run that the new one gets, by event number.
    pub signals: Vec<EventNumber>,
    /// Accepted updates of this run that the new one takes over.
    pub updates: Vec<UpdateId>,
}

/// The run was paused: nothing new is scheduled or dispatched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPaused {
    pub reason: String,
    pub identity: String,
    /// Idempotency key of the request.
    pub key: Option<Key>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunUnpaused {
    pub reason: String,
    pub identity: String,
    /// Idempotency key of the request.
    pub key: Option<Key>,
}
