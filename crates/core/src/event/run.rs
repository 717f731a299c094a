//! The life of a run as a whole: start, the ways it ends, cancel request, pause.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    digest::Digest,
    failure::Failure,
    ids::{EventNumber, Key, NamespaceId, RunId, UpdateId, WorkflowId, WorkflowKey},
    payload::{PayloadMap, Payloads},
    retry::{RetryPolicy, RetryState},
    time::Timestamp,
};

/// What to run and how: common to a start, a child and the next run of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The workflow's type.
    pub workflow_type: String,
    /// The queue whose workers run its code.
    pub queue: String,
    /// Arguments.
    pub input: Payloads,
    /// Context that is passed along.
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
    /// Unindexed facts for people.
    pub memo: PayloadMap,
    /// Indexed facts for lists.
    pub search_attributes: PayloadMap,
}

/// The run began.
#[derive(Clone, Debug, PartialEq)]
pub struct RunStarted {
    /// The namespace.
    pub namespace: NamespaceId,
    /// The workflow.
    pub workflow: WorkflowId,
    /// The run.
    pub run: RunId,
    /// Counts the runs of this workflow id.
    pub ordinal: u64,
    /// What to run and how.
    pub spec: RunSpec,
    /// Who asked.
    pub identity: String,
    /// Idempotency key of the start.
    pub key: Option<Key>,
    /// First run of the chain: equal to `run` unless the run follows another.
    pub first_run: RunId,
    /// The run whose random seed code sees: stays the same over resets.
    pub original_run: RunId,
    /// The run before this one in the chain.
    pub previous: Option<PreviousRun>,
    /// Which attempt of the chain's retry policy this is, from 1.
    pub attempt: u32,
    /// When the chain's time is up.
    pub expires_at: Option<Timestamp>,
    /// When the first task is scheduled, if not at once: start delay, retry, cron.
    pub first_task_at: Option<Timestamp>,
    /// The parent, if the run is a child.
    pub parent: Option<Parent>,
    /// The topmost ancestor.
    pub root: Option<RunReference>,
}

/// How a run follows another of the same workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreviousRun {
    /// The run before.
    pub run: RunId,
    /// Why it was followed.
    pub initiator: Initiator,
    /// The failure that led here, for a retry or a cron run.
    pub failure: Option<Failure>,
    /// The last result of the chain, for cron.
    pub last_result: Option<Payloads>,
    /// Keys of signals that the chain has taken: a repeat stays a repeat.
    pub signal_keys: Vec<Key>,
    /// The same of moves of timers: ids of timers are counted anew in each run.
    pub reschedule_keys: Vec<Key>,
    /// Updates that were completed, and in which run: a repeat gets the same outcome.
    pub completed_updates: Vec<CompletedUpdate>,
    /// Keys of cancel requests.
    pub cancel_keys: Vec<Key>,
    /// Keys of pauses.
    pub pause_keys: Vec<Key>,
    /// Keys of the ends of pauses.
    pub unpause_keys: Vec<Key>,
    /// What each of the signal keys was used for, in the same order; none in logs of older versions.
    pub signal_digests: Vec<Digest>,
}

/// Where the outcome of an update stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedUpdate {
    /// The update.
    pub update: UpdateId,
    /// The run that completed it.
    pub run: RunId,
    /// What was asked for.
    pub asked: Digest,
}

/// Why a run followed another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Initiator {
    /// Code asked for it.
    ContinueAsNew,
    /// The retry policy asked for it.
    Retry,
    /// The cron schedule asked for it.
    Cron,
    /// An operator reset the workflow.
    Reset,
}

/// A child's parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The parent's run.
    pub run: RunReference,
    /// The event in the parent's history that asked for the child.
    pub initiated: EventNumber,
}

/// A run and its workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReference {
    /// Its workflow.
    pub workflow: WorkflowKey,
    /// The run.
    pub run: RunId,
}

/// The run ended with a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCompleted {
    /// The result.
    pub result: Payloads,
    /// The next run of the chain, for cron.
    pub next_run: Option<RunId>,
}

/// The run ended with a failure.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFailed {
    /// Why.
    pub failure: Failure,
    /// Whether it is tried again, or why not.
    pub retry_state: RetryState,
    /// The next run of the chain.
    pub next_run: Option<RunId>,
}

/// The run's time was up.
#[derive(Clone, Debug, PartialEq)]
pub struct RunTimedOut {
    /// Whether it is tried again, or why not.
    pub retry_state: RetryState,
    /// The next run of the chain.
    pub next_run: Option<RunId>,
}

/// Somebody asked the run to cancel itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCancelRequested {
    /// Why.
    pub reason: String,
    /// Who asked.
    pub identity: String,
    /// Idempotency key of the request.
    pub key: Option<Key>,
    /// The run that asked, if one did.
    pub source: Option<RunReference>,
    /// When the request was received.
    pub received_at: Timestamp,
}

/// The run ended by cancelling itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCancelled {
    /// Data for whoever asked.
    pub details: Payloads,
}

/// The run was ended from outside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTerminated {
    /// Why.
    pub reason: String,
    /// Who did it.
    pub identity: String,
    /// Data for the record.
    pub details: Payloads,
    /// Idempotency key of the request.
    pub key: Option<Key>,
}

/// The run ended and a new one goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct RunContinuedAsNew {
    /// The new run.
    pub next_run: RunId,
    /// What it runs.
    pub spec: RunSpec,
    /// Signals of this run that the new one gets, by number of their events.
    pub signals: Vec<EventNumber>,
    /// Accepted updates of this run that the new one takes over.
    pub updates: Vec<UpdateId>,
}

/// Nothing new is scheduled or dispatched from here on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPaused {
    /// Why.
    pub reason: String,
    /// Who did it.
    pub identity: String,
    /// Idempotency key of the request.
    pub key: Option<Key>,
}

/// The pause is over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunUnpaused {
    /// Why.
    pub reason: String,
    /// Who did it.
    pub identity: String,
    /// Idempotency key of the request.
    pub key: Option<Key>,
}
