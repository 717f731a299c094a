//! A handle to a workflow: signals, queries, updates and the result, typed by the workflow.

use std::{fmt, marker::PhantomData, sync::Arc};

use abide_core::{
    effect::RunOutcome,
    ids::{RunId, UpdateId, WorkflowId, WorkflowKey},
    operation::{AwaitClose, Describe, RunTarget},
    payload::Payloads,
};

use super::{Client, ClientError, Description, Query, Signal, Untyped, Update, UpdateHandle};
use crate::{
    arguments::{ArgumentList, IntoArguments},
    definition::{QueryDef, SignalDef, UpdateDef, Workflow},
    payload::PayloadValue,
};

/// A workflow, or [`Untyped`], with the type of its handles: [`WorkflowHandle`], or a type around it
/// whose methods are the signals, queries and updates of the workflow. Implemented by `#[workflow]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a workflow that a client can start",
    note = "put `#[workflow]` on its impl block or function"
)]
pub trait Handled: Sized + 'static {
    /// What clients hold of a run.
    type Handle: From<WorkflowHandle<Self>>
        + AsRef<WorkflowHandle<Self>>
        + Clone
        + fmt::Debug
        + Send
        + Sync;
}

impl Handled for Untyped {
    type Handle = WorkflowHandle<Self>;
}

/// A handle to a workflow. Calls go to its current run, unless [`WorkflowHandle::run`] binds it to
/// one.
pub struct WorkflowHandle<W> {
    pub(super) client: Client,
    pub(super) workflow: WorkflowKey,
    pub(super) run: Option<RunId>,
    pub(super) started: Option<RunId>,
    pub(super) of: PhantomData<fn() -> W>,
}

impl<W> Clone for WorkflowHandle<W> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            workflow: self.workflow.clone(),
            run: self.run,
            started: self.started,
            of: PhantomData,
        }
    }
}

/// For code that holds the handle of any workflow.
impl<W> AsRef<Self> for WorkflowHandle<W> {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<W> fmt::Debug for WorkflowHandle<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkflowHandle")
            .field("workflow", &self.workflow)
            .field("run", &self.run_id())
            .finish_non_exhaustive()
    }
}

impl<W> WorkflowHandle<W> {
    /// The workflow's id, unique within its namespace.
    pub fn id(&self) -> &WorkflowId {
        &self.workflow.workflow
    }

    /// The run that this handle is bound to, or that its start created or found; none if neither.
    pub fn run_id(&self) -> Option<RunId> {
        self.run.or(self.started)
    }

    /// A handle that is bound to one run.
    #[must_use]
    pub fn run(&self, run: RunId) -> W::Handle
    where
        W: Handled,
    {
        Self { run: Some(run), ..self.clone() }.into()
    }

    /// The run that calls go to. For Abide's own programs.
    #[doc(hidden)]
    pub fn target(&self) -> RunTarget {
        RunTarget { workflow: self.workflow.clone(), run: self.run }
    }

    /// Returns the current state of the run.
    pub async fn describe(&self) -> Result<Description, ClientError> {
        Ok(Description::of(*self.client.ask(Describe { target: self.target() }).await?))
    }

    /// Sends a signal by name, with encoded input. Await the returned value.
    pub fn signal_untyped(&self, name: impl Into<String>, input: Payloads) -> Signal {
        Signal::new(self.client.clone(), self.target(), name.into(), Ok(input))
    }

    /// Sends a query by name, with encoded input. Await the returned value for its answer.
    pub fn query_untyped(&self, name: impl Into<String>, input: Payloads) -> Query<Payloads> {
        Query::new(self.client.clone(), self.target(), name.into(), Ok(input), Ok)
    }

    /// Sends an update by name, with encoded input. Await the returned value.
    pub fn update_untyped(&self, name: impl Into<String>, input: Payloads) -> Update<Payloads> {
        Update::new(self.client.clone(), self.target(), name.into(), Ok(input), Ok)
    }

    /// A handle to an update that was sent before, perhaps by another client, with an encoded
    /// result.
    pub fn update_by_id_untyped(&self, id: impl Into<UpdateId>) -> UpdateHandle<Payloads> {
        UpdateHandle::new(self.client.clone(), self.target(), id.into(), Arc::new(Ok))
    }

    /// Waits for the encoded result, across all runs that follow. Fails if the run's queue has lost
    /// its worker, as [`Worker::spawn`](crate::Worker::spawn) says. Logs a warning if no worker takes
    /// the run's task within seconds.
    pub async fn result_untyped(&self) -> Result<Payloads, ClientError> {
        self.client.with_worker(&self.target(), self.outcome()).await
    }

    /// Waits for the outcome, across all runs that follow.
    async fn outcome(&self) -> Result<Payloads, ClientError> {
        let mut target = RunTarget { run: self.run_id(), ..self.target() };
        loop {
            let closed = self.client.wait(AwaitClose { target: target.clone() }).await?;
            match (closed.next_run, closed.outcome) {
                // A run that is retried or repeated by cron has an outcome too, but a next run
                // follows it.
                (next @ Some(_), _) => target.run = next,
                (None, Some(outcome)) => return result(outcome),
                (None, None) => return Err(ClientError::unexpected(&closed.how)),
            }
        }
    }
}

fn result(outcome: RunOutcome) -> Result<Payloads, ClientError> {
    Err(match outcome {
        RunOutcome::Completed(result) => return Ok(result),
        RunOutcome::Failed { failure, .. } => ClientError::RunFailed(Box::new(failure.into())),
        RunOutcome::TimedOut { .. } => ClientError::RunTimedOut,
        RunOutcome::Cancelled(details) => ClientError::RunCancelled(details),
        RunOutcome::Terminated { reason } => ClientError::RunTerminated(reason),
    })
}

impl<W: Workflow> WorkflowHandle<W> {
    /// Sends a signal. Await the returned value.
    pub fn signal<I: ArgumentList>(
        &self,
        definition: SignalDef<W, I>,
        input: impl IntoArguments<I>,
    ) -> Signal {
        let payloads = definition.encode(&input.into_arguments());
        Signal::new(self.client.clone(), self.target(), definition.name().into(), payloads)
    }

    /// Sends a query. Await the returned value for its answer.
    pub fn query<I: ArgumentList, O: PayloadValue>(
        &self,
        definition: QueryDef<W, I, O>,
        input: impl IntoArguments<I>,
    ) -> Query<O> {
        let payloads = definition.encode(&input.into_arguments());
        let decode = move |answer: Payloads| definition.decode(&answer);
        Query::new(self.client.clone(), self.target(), definition.name().into(), payloads, decode)
    }

    /// Sends an update. Await the returned value for its outcome.
    pub fn update<I: ArgumentList, O: PayloadValue>(
        &self,
        definition: UpdateDef<W, I, O>,
        input: impl IntoArguments<I>,
    ) -> Update<O> {
        let payloads = definition.encode(&input.into_arguments());
        let decode = move |result: Payloads| definition.decode(&result);
        Update::new(self.client.clone(), self.target(), definition.name().into(), payloads, decode)
    }

    /// A handle to an update of this kind that was sent before, perhaps by another client, and
    /// perhaps to an earlier run that continued as new. Nothing is sent: the handle's `result()`
    /// waits for the outcome, its `poll()` returns the update's current stage. An id that the run
    /// does not know is refused as unknown; so is a rejected update, because it leaves no trace in
    /// history.
    pub fn update_by_id<I: ArgumentList, O: PayloadValue>(
        &self,
        definition: UpdateDef<W, I, O>,
        id: impl Into<UpdateId>,
    ) -> UpdateHandle<O> {
        let decode = move |result: Payloads| definition.decode(&result);
        UpdateHandle::new(self.client.clone(), self.target(), id.into(), Arc::new(decode))
    }

    /// Waits for the result, across all runs that follow. Fails if the run's queue has lost its
    /// worker, as [`Worker::spawn`](crate::Worker::spawn) says. Logs a warning if no worker takes the
    /// run's task within seconds.
    pub async fn result(&self) -> Result<W::Output, ClientError> {
        let result = self.result_untyped().await?;
        Ok(W::decode_output(&result)?)
    }
}
