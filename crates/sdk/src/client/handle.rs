//! A handle to a workflow: signals, queries, updates and the result, typed by the workflow.

use std::{marker::PhantomData, sync::Arc};

use abide_core::{
    effect::RunOutcome,
    ids::{RunId, UpdateId, WorkflowId, WorkflowKey},
    operation::{AwaitClose, Describe, Query, QueryAnswer, QueryRequest, RunTarget},
    payload::Payloads,
    run::Description,
};

use super::{Client, ClientError, Signal, Update, UpdateHandle};
use crate::definition::{QueryDef, SignalDef, UpdateDef, Workflow};

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

impl<W> std::fmt::Debug for WorkflowHandle<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

    /// Binds the handle to one run.
    #[must_use]
    pub fn run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    pub(super) fn target(&self) -> RunTarget {
        RunTarget { workflow: self.workflow.clone(), run: self.run }
    }

    /// Returns the current state of the run.
    pub async fn describe(&self) -> Result<Description, ClientError> {
        Ok(*self.client.ask(Describe { target: self.target() }).await?)
    }

    /// Sends a signal by name, with encoded input. Await the returned value.
    pub fn signal_untyped(&self, name: impl Into<String>, input: Payloads) -> Signal {
        Signal::new(self.client.clone(), self.target(), name.into(), Ok(input))
    }

    /// Sends a query by name, with encoded input, and waits for its answer.
    pub async fn query_untyped(
        &self,
        name: impl Into<String>,
        input: Payloads,
    ) -> Result<Payloads, ClientError> {
        let query = QueryRequest::new(name, input);
        match self.client.ask(Query { target: self.target(), query }).await {
            Ok(QueryAnswer(answer)) => {
                answer.map_err(|failure| ClientError::QueryFailed(Box::new(failure)))
            }
            Err(ClientError::Unavailable(why)) => Err(ClientError::Unavailable(format!(
                "{why}; a query needs a worker on the run's queue: check that one is running"
            ))),
            Err(error) => Err(error),
        }
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
        RunOutcome::Failed { failure, .. } => ClientError::RunFailed(Box::new(failure)),
        RunOutcome::TimedOut { .. } => ClientError::RunTimedOut,
        RunOutcome::Cancelled(details) => ClientError::RunCancelled(details),
        RunOutcome::Terminated { reason } => ClientError::RunTerminated(reason),
    })
}

impl<W: Workflow> WorkflowHandle<W> {
    /// Sends a signal. Await the returned value.
    pub fn signal<I>(&self, definition: SignalDef<W, I>, input: I) -> Signal {
        let payloads = definition.encode(&input);
        Signal::new(self.client.clone(), self.target(), definition.name().into(), payloads)
    }

    /// Sends a query and waits for its answer.
    pub async fn query<I, O: crate::payload::AsPayload>(
        &self,
        definition: QueryDef<W, I, O>,
        input: I,
    ) -> Result<O, ClientError> {
        let input = definition.encode(&input)?;
        let answer = self.query_untyped(definition.name(), input).await?;
        Ok(definition.decode(&answer)?)
    }

    /// Sends an update. Await the returned value for its outcome.
    pub fn update<I, O: crate::payload::AsPayload>(
        &self,
        definition: UpdateDef<W, I, O>,
        input: I,
    ) -> Update<O> {
        let payloads = definition.encode(&input);
        let decode = move |result: Payloads| definition.decode(&result);
        Update::new(self.client.clone(), self.target(), definition.name().into(), payloads, decode)
    }

    /// A handle to an update of this kind that was sent before, perhaps by another client, and
    /// perhaps to an earlier run that continued as new. Nothing is sent: the handle's `result()`
    /// waits for the outcome, its `poll()` returns the update's current stage. An id that the run
    /// does not know is refused as unknown; so is a rejected update, because it leaves no trace in
    /// history.
    pub fn update_by_id<I, O: crate::payload::AsPayload>(
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
