//! A handle of a workflow: signals, queries, updates and the result, typed by the workflow.

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

/// A workflow, as a client sees it. What is sent goes to its current run, unless
/// [`WorkflowHandle::run`] names one.
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
    /// The workflow's id.
    pub fn id(&self) -> &WorkflowId {
        &self.workflow.workflow
    }

    /// The run that this handle means, or that its start began or found.
    pub fn run_id(&self) -> Option<RunId> {
        self.run.or(self.started)
    }

    /// The same handle, bound to one run.
    #[must_use]
    pub fn run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// What calls are aimed at.
    pub(super) fn target(&self) -> RunTarget {
        RunTarget { workflow: self.workflow.clone(), run: self.run }
    }

    /// Shows the run as it is.
    pub async fn describe(&self) -> Result<Description, ClientError> {
        Ok(*self.client.ask(Describe { target: self.target() }).await?)
    }

    /// Sends a signal that is known by name only. Await what this returns.
    pub fn signal_untyped(&self, name: impl Into<String>, input: Payloads) -> Signal {
        Signal::new(self.client.clone(), self.target(), name.into(), Ok(input))
    }

    /// Asks a query that is known by name only.
    pub async fn query_untyped(
        &self,
        name: impl Into<String>,
        input: Payloads,
    ) -> Result<Payloads, ClientError> {
        let query = QueryRequest { name: name.into(), input };
        match self.client.ask(Query { target: self.target(), query }).await {
            Ok(QueryAnswer(answer)) => {
                answer.map_err(|failure| ClientError::QueryFailed(Box::new(failure)))
            }
            Err(ClientError::Unavailable(why)) => Err(ClientError::Unavailable(format!(
                "{why}; a query needs a worker of the run's queue: is there one?"
            ))),
            Err(error) => Err(error),
        }
    }

    /// Asks for an update that is known by name only. Await what this returns.
    pub fn update_untyped(&self, name: impl Into<String>, input: Payloads) -> Update<Payloads> {
        Update::new(self.client.clone(), self.target(), name.into(), Ok(input), Ok)
    }

    /// An update that is known by its id only and was asked for before, perhaps by another client.
    pub fn update_by_id_untyped(&self, id: impl Into<UpdateId>) -> UpdateHandle<Payloads> {
        UpdateHandle::new(self.client.clone(), self.target(), id.into(), Arc::new(Ok))
    }

    /// Waits for the result as payloads, over all runs that follow.
    pub async fn result_untyped(&self) -> Result<Payloads, ClientError> {
        let mut target = RunTarget { run: self.run_id(), ..self.target() };
        loop {
            let closed = self.client.wait(AwaitClose { target: target.clone() }).await?;
            match (closed.next_run, closed.outcome) {
                // A run that is tried again or repeated has an outcome too, but not the last word.
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
    /// Sends a signal. Await what this returns.
    pub fn signal<I>(&self, definition: SignalDef<W, I>, input: I) -> Signal {
        let payloads = definition.encode(&input);
        Signal::new(self.client.clone(), self.target(), definition.name().into(), payloads)
    }

    /// Asks a query and waits for its answer.
    pub async fn query<I, O: crate::payload::Data>(
        &self,
        definition: QueryDef<W, I, O>,
        input: I,
    ) -> Result<O, ClientError> {
        let input = definition.encode(&input)?;
        let answer = self.query_untyped(definition.name(), input).await?;
        Ok(definition.decode(&answer)?)
    }

    /// Asks for an update. Await what this returns for its outcome.
    pub fn update<I, O: crate::payload::Data>(
        &self,
        definition: UpdateDef<W, I, O>,
        input: I,
    ) -> Update<O> {
        let payloads = definition.encode(&input);
        let decode = move |result: Payloads| definition.decode(&result);
        Update::new(self.client.clone(), self.target(), definition.name().into(), payloads, decode)
    }

    /// An update of this kind that was asked for before, perhaps by another client, and perhaps from a
    /// run before the current one that continued as new. Nothing is asked for: the handle's `result()`
    /// waits for the outcome, its `poll()` tells how far the update is. An id that the run does not
    /// know, or whose update was rejected, which leaves no trace, is refused as unknown.
    pub fn update_by_id<I, O: crate::payload::Data>(
        &self,
        definition: UpdateDef<W, I, O>,
        id: impl Into<UpdateId>,
    ) -> UpdateHandle<O> {
        let decode = move |result: Payloads| definition.decode(&result);
        UpdateHandle::new(self.client.clone(), self.target(), id.into(), Arc::new(decode))
    }

    /// Waits for the result, over all runs that follow.
    pub async fn result(&self) -> Result<W::Output, ClientError> {
        let result = self.result_untyped().await?;
        Ok(W::decode_output(&result)?)
    }
}
