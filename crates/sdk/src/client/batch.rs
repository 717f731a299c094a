//! Batches: one action on every run that a query finds, carried out by the engine.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use abide_core::{
    batch::{
        self, BatchAction, BatchSpec, BatchState, Batches, ListBatches, StartBatch, StopBatch,
    },
    ids::{BuildId, RunId, WorkflowId},
    payload::Payloads,
    run::ResetPoint,
    time::Timestamp,
};
use tokio::time::sleep;

use super::{Client, ClientError, repeat::fresh_key};
use crate::{
    arguments::{ArgumentList, IntoArguments},
    definition::SignalDef,
};

/// How often a client that waits for the end of a batch asks.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// One action on every run that a query finds. It is sent when awaited, by one of the methods that name
/// an action; the engine carries it out, also if this process ends.
#[must_use = "nothing is done until an action is awaited"]
pub struct Batch {
    client: Client,
    spec: BatchSpec,
}

/// A batch with its action, to be awaited.
#[must_use = "nothing is done until this is awaited"]
pub struct BatchStart {
    batch: Batch,
    action: Result<BatchAction, ClientError>,
}

/// A batch, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchInfo {
    /// Its id.
    pub id: String,
    /// Which runs it acts on.
    pub query: String,
    /// What it does: cancel, terminate, delete, signal or reset.
    pub action: &'static str,
    /// Whether it goes on.
    pub status: BatchStatus,
    /// Why, as the request said.
    pub reason: String,
    /// Who started it.
    pub identity: String,
    /// Runs per second at most.
    pub rate: u32,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Runs that the query found when it was started.
    pub total: u64,
    /// Runs to which the action was done.
    pub done: u64,
    /// Runs that refused it.
    pub failed: u64,
    /// The first of those.
    pub failures: Vec<BatchFailure>,
}

/// A run that refused the action of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchFailure {
    /// Its workflow.
    pub workflow: WorkflowId,
    /// The run.
    pub run: RunId,
    /// Why it refused.
    pub reason: String,
}

/// Whether a batch goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BatchStatus {
    /// It goes on.
    Running,
    /// It was stopped.
    Stopped,
    /// It has dealt with all runs.
    Completed,
}

impl Client {
    /// One action on every run of the client's namespace that the query finds:
    /// `client.batch("WorkflowType = 'order'").terminate().await?`.
    pub fn batch(&self, query: impl Into<String>) -> Batch {
        let spec = BatchSpec {
            id: fresh_key().to_string(),
            query: query.into(),
            action: BatchAction::Cancel,
            rate: 0,
            reason: String::new(),
            identity: self.identity().to_owned(),
        };
        Batch { client: self.clone(), spec }
    }

    /// The batches of the client's namespace, the newest last. Old ones that have ended are forgotten.
    pub async fn batches(&self) -> Result<Vec<BatchInfo>, ClientError> {
        let namespace = self.namespace().clone();
        let Batches(all) = self.ask(ListBatches { namespace }).await?;
        Ok(all.into_iter().map(BatchInfo::from).collect())
    }

    /// Waits for the end of a batch; asks twice a second how far it is.
    pub async fn batch_end(&self, id: &str) -> Result<BatchInfo, ClientError> {
        loop {
            let batch = self.batches().await?.into_iter().find(|batch| batch.id == id);
            match batch.ok_or(ClientError::NotFound)? {
                BatchInfo { status: BatchStatus::Running, .. } => sleep(ASK_AGAIN).await,
                ended => return Ok(ended),
            }
        }
    }

    /// Stops a batch. What it has done stays done.
    pub async fn stop_batch(&self, id: impl Into<String>) -> Result<BatchInfo, ClientError> {
        let (namespace, id) = (self.namespace().clone(), id.into());
        one(self.ask(StopBatch { namespace, id }).await?)
    }
}

fn one(Batches(batches): Batches) -> Result<BatchInfo, ClientError> {
    let batch = batches.into_iter().next().map(BatchInfo::from);
    batch.ok_or_else(|| ClientError::unexpected(&"no batch"))
}

impl Batch {
    /// The id. By default each batch gets a new one; a repeat with the same id changes nothing.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.spec.id = id.into();
        self
    }

    /// How many runs per second at most; 100 by default.
    pub const fn rate(mut self, runs_per_second: u32) -> Self {
        self.spec.rate = runs_per_second;
        self
    }

    /// The reason that histories record.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.spec.reason = reason.into();
        self
    }

    /// Asks each run to cancel.
    pub fn cancel(self) -> BatchStart {
        self.does(BatchAction::Cancel)
    }

    /// Terminates each run.
    pub fn terminate(self) -> BatchStart {
        self.does(BatchAction::Terminate)
    }

    /// Deletes each run; open ones refuse it.
    pub fn delete(self) -> BatchStart {
        self.does(BatchAction::Delete)
    }

    /// Sends each run a signal.
    pub fn signal<W, I: ArgumentList>(
        self,
        definition: SignalDef<W, I>,
        input: impl IntoArguments<I>,
    ) -> BatchStart {
        let name = definition.name().into();
        let input = definition.encode(&input.into_arguments());
        let action = input.map(|input| BatchAction::Signal { name, input });
        BatchStart { batch: self, action: action.map_err(ClientError::from) }
    }

    /// Sends each run a signal with encoded data.
    pub fn signal_untyped(self, name: impl Into<String>, input: Payloads) -> BatchStart {
        self.does(BatchAction::Signal { name: name.into(), input })
    }

    /// Tries the step again that failed in each run.
    pub fn retry(self) -> BatchStart {
        self.resets(ResetPoint::Failure)
    }

    /// Resets each run to its first task.
    pub fn reset_to_first_task(self) -> BatchStart {
        self.resets(ResetPoint::FirstTask)
    }

    /// Resets each run to its last task.
    pub fn reset_to_last_task(self) -> BatchStart {
        self.resets(ResetPoint::LastTask)
    }

    /// Resets each run to the first task that this build completed.
    pub fn reset_to_build(self, build: impl Into<BuildId>) -> BatchStart {
        self.resets(ResetPoint::Build(build.into()))
    }

    fn resets(self, to: ResetPoint) -> BatchStart {
        self.does(BatchAction::Reset { to, drop_signals: false, drop_updates: false })
    }

    const fn does(self, action: BatchAction) -> BatchStart {
        BatchStart { batch: self, action: Ok(action) }
    }
}

impl BatchStart {
    async fn send(self) -> Result<BatchInfo, ClientError> {
        let Batch { client, spec } = self.batch;
        let namespace = client.namespace().clone();
        let spec = BatchSpec { action: self.action?, ..spec };
        one(client.ask(StartBatch { namespace, spec }).await?)
    }
}

impl IntoFuture for BatchStart {
    type Output = Result<BatchInfo, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl From<batch::Batch> for BatchInfo {
    fn from(batch: batch::Batch) -> Self {
        let failure = |failure: batch::BatchFailure| BatchFailure {
            workflow: failure.workflow,
            run: failure.run,
            reason: failure.reason,
        };
        Self {
            action: batch.spec.action.name(),
            status: match batch.state {
                BatchState::Running => BatchStatus::Running,
                BatchState::Stopped => BatchStatus::Stopped,
                BatchState::Completed => BatchStatus::Completed,
            },
            id: batch.spec.id,
            query: batch.spec.query,
            reason: batch.spec.reason,
            identity: batch.spec.identity,
            rate: batch.spec.rate,
            started_at: batch.started_at,
            ended_at: batch.ended_at,
            total: batch.total,
            done: batch.done,
            failed: batch.failed,
            failures: batch.failures.into_iter().map(failure).collect(),
        }
    }
}

impl fmt::Display for BatchStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Completed => "completed",
        })
    }
}
