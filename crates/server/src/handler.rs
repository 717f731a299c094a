//! Gives operations to the engine. Single calls and streams of calls share it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use abide_core::{
    dispatch::QueueKey,
    limits::{Exceeded, InvalidField},
    node::{NodeListing, NodeStanding},
    operation::{AnyAnswer, AnyOperation, CallError, Caller, Nodes, Operation, OperationName},
    run::Refusal,
};
use abide_engine::Engine;
use abide_proto::{error, generated::Credit, worker::credit_from_wire};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tonic::Status;

use crate::{Bounds, guests::Guests, metrics::Results};

/// How long a stream waits before it asks a shard again that is being opened anew.
const REOPENING: Duration = Duration::from_millis(100);

/// What every method needs.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) engine: Arc<Engine>,
    pub(crate) bounds: Arc<Bounds>,
    /// Where the server listens.
    listens: SocketAddr,
    /// Becomes true when the server stops.
    pub(crate) stopping: watch::Receiver<bool>,
    streams: Arc<Semaphore>,
    /// Who is connected.
    pub(crate) guests: Arc<Guests>,
    /// How calls of clients ended.
    pub(crate) calls: Arc<Results>,
    /// How completions of workers ended.
    pub(crate) completions: Arc<Results>,
}

impl Handler {
    pub(crate) fn new(
        engine: Arc<Engine>,
        bounds: Bounds,
        listens: SocketAddr,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let (streams, bounds) = (Arc::new(Semaphore::new(bounds.streams)), Arc::new(bounds));
        Self {
            engine,
            guests: Guests::new(Arc::clone(&bounds)),
            bounds,
            listens,
            stopping,
            streams,
            calls: Arc::default(),
            completions: Arc::default(),
        }
    }

    /// What a message asks for. One that asks for nothing that makes sense has ended by that.
    pub(crate) fn counted<O>(&self, read: Result<O, InvalidField>) -> Result<O, CallError> {
        let read = read.map_err(CallError::from);
        if read.is_err() {
            self.calls.count(&read);
        }
        read
    }

    /// Performs an operation.
    pub(crate) async fn perform(&self, operation: AnyOperation) -> Result<AnyAnswer, CallError> {
        let mut answer = self.engine.ask(&Caller::TRUSTED, operation).await;
        self.calls.count(&answer);
        if let Ok(AnyAnswer::Nodes(Nodes(nodes))) = &mut answer {
            self.locate(nodes);
        }
        answer
    }

    /// Performs what is part of an answer to somebody else's question, and is not counted as one.
    pub(crate) async fn look<O: Operation>(&self, operation: O) -> Result<O::Answer, CallError> {
        self.engine.ask(&Caller::TRUSTED, operation.into()).await.and_then(O::answer)
    }

    /// A node that is alone tells nobody where it is; whoever asks has found it here.
    fn locate(&self, nodes: &mut [NodeListing]) {
        let alone = |node: &&mut NodeListing| {
            node.address.is_empty() && node.standing == NodeStanding::Alive
        };
        if let Some(alone) = nodes.iter_mut().find(alone) {
            alone.address = self.listens.to_string();
        }
    }

    /// Whether whoever follows a run asks again: its shard is being opened anew, here or elsewhere, and
    /// nothing that the caller did is at fault. Waits before it says so. A server that has lost its lease
    /// may be cut off from its store for long, and the caller can follow the run at another.
    pub(crate) async fn goes_on(&self, failed: &CallError) -> bool {
        let goes_on = failed.passing() && self.engine.joined() && !self.engine.stopping();
        if goes_on {
            tokio::time::sleep(REOPENING).await;
        }
        goes_on
    }

    /// A place for a long stream, to be kept until it ends.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, Status> {
        let place = Arc::clone(&self.streams).try_acquire_owned();
        place.map_err(|_| exceeded("streams of the server", self.bounds.streams))
    }

    /// How many long streams there are.
    pub(crate) fn open_streams(&self) -> usize {
        self.bounds.streams.saturating_sub(self.streams.available_permits())
    }

    /// How calls of clients and completions of workers ended.
    pub(crate) fn results(&self) -> (&Results, &Results) {
        (&self.calls, &self.completions)
    }

    /// The queue of a credit, which must be one that there can be, and how much of it.
    pub(crate) fn credit(&self, credit: Credit) -> Result<(QueueKey, usize), CallError> {
        let (queue, credits) = credit_from_wire(credit)?;
        self.engine.check_namespace(&queue.namespace)?;
        self.engine.limits().check_name("queue", &queue.queue)?;
        Ok((queue, credits))
    }

    /// Bytes of one frame, as clients and workers are told.
    pub(crate) fn message_bytes(&self) -> u64 {
        u64::try_from(self.bounds.message_bytes).unwrap_or(u64::MAX)
    }
}

/// Whether the answer may have many rows.
pub(crate) const fn is_page(operation: &AnyOperation) -> bool {
    matches!(
        operation.name(),
        OperationName::History
            | OperationName::ListRuns
            | OperationName::ListWaits
            | OperationName::Tally
    )
}

/// A bound of the server would be passed.
pub(crate) fn exceeded(what: &'static str, limit: usize) -> Status {
    status(over(what, limit))
}

/// A bound of the server would be passed.
pub(crate) fn over(what: &'static str, limit: usize) -> CallError {
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    CallError::Refused(Refusal::Limit(Exceeded { what: what.into(), limit }))
}

/// The status of an error.
pub(crate) fn status(failed: impl Into<CallError>) -> Status {
    error::to_status(error::to_detail(failed.into()))
}
