//! Passes operations to the engine. Single calls and streams of calls share it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use abide_core::{
    dispatch::QueueKey,
    limits::{Exceeded, InvalidField},
    node::{NodeListing, NodeStanding},
    operation::{
        AnswerSize, AnyAnswer, AnyOperation, CallError, Caller, History, HistoryPage, Nodes,
        Operation,
    },
    run::Refusal,
};
use abide_engine::{Engine, Turn};
use abide_proto::{error, generated::Credit, worker::credit_from_wire};
use futures_util::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tonic::Status;

use crate::{
    Bounds,
    connections::{Connection, Connections},
    metrics::Results,
};

/// Pause before a stream retries at a shard that is being reopened.
const REOPENING: Duration = Duration::from_millis(100);

/// Shared state of all methods.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) engine: Arc<Engine>,
    pub(crate) bounds: Arc<Bounds>,
    /// Address of the gRPC listener.
    listens: SocketAddr,
    /// Becomes true when the server stops.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) connections: Arc<Connections>,
    /// Counts calls of clients by result.
    pub(crate) calls: Arc<Results>,
    /// Counts completions of workers by result.
    pub(crate) completions: Arc<Results>,
}

impl Handler {
    pub(crate) fn new(
        engine: Arc<Engine>,
        bounds: Bounds,
        listens: SocketAddr,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let bounds = Arc::new(bounds);
        Self {
            engine,
            connections: Connections::new(Arc::clone(&bounds)),
            bounds,
            listens,
            stopping,
            calls: Arc::default(),
            completions: Arc::default(),
        }
    }

    /// The operation of a request. A request that cannot be read is counted as a failed call.
    pub(crate) fn counted<O>(&self, read: Result<O, InvalidField>) -> Result<O, CallError> {
        let read = read.map_err(CallError::from);
        if read.is_err() {
            self.calls.count(&read);
        }
        read
    }

    /// Performs an operation and counts its result.
    pub(crate) async fn perform(&self, operation: AnyOperation) -> Result<AnyAnswer, CallError> {
        let mut answer = self.engine.ask(&Caller::TRUSTED, operation).await;
        self.calls.count(&answer);
        if let Ok(AnyAnswer::Nodes(Nodes(nodes))) = &mut answer {
            self.locate(nodes);
        }
        answer
    }

    /// Performs an operation for a connection. If building the answer takes much memory and time, it
    /// waits for its turn, which lasts until the returned value is dropped.
    pub(crate) async fn perform_in_turn(
        &self,
        connection: &Connection,
        operation: AnyOperation,
    ) -> (Result<AnyAnswer, CallError>, Option<Building>) {
        if !is_built(&operation) {
            return (self.perform(operation).await, None);
        }
        let answer = self.ask_in_turn(connection, operation).await;
        self.calls.count(&answer);
        match answer {
            Ok((answer, building)) => (Ok(answer), Some(building)),
            Err(failed) => (Err(failed), None),
        }
    }

    /// Looks up a page of a history in its turn, without counting it.
    pub(crate) async fn page_in_turn(
        &self,
        connection: &Connection,
        page: History,
    ) -> Result<(HistoryPage, Building), CallError> {
        let (answer, building) = self.ask_in_turn(connection, page.into()).await?;
        Ok((History::answer(answer)?, building))
    }

    async fn ask_in_turn(
        &self,
        connection: &Connection,
        operation: AnyOperation,
    ) -> Result<(AnyAnswer, Building), CallError> {
        let asked = connection.ask_for_answer().await;
        let turns = || connection.build_answer().map(|turn| Box::new(turn) as Turn).boxed();
        let answer = self.engine.ask_in_turn(&Caller::TRUSTED, operation, &turns).await;
        answer.map(|(answer, turn)| (answer, Building { _asked: asked, _turn: turn }))
    }

    /// Performs an operation that is part of answering another one, without counting it.
    pub(crate) async fn ask_uncounted<O: Operation>(
        &self,
        operation: O,
    ) -> Result<O::Answer, CallError> {
        self.engine.ask(&Caller::TRUSTED, operation.into()).await.and_then(O::answer)
    }

    /// A node without peers advertises no address, so fill in the one at which this caller reached
    /// it.
    fn locate(&self, nodes: &mut [NodeListing]) {
        let alone = |node: &&mut NodeListing| {
            node.address.is_empty() && node.standing == NodeStanding::Alive
        };
        if let Some(alone) = nodes.iter_mut().find(alone) {
            alone.address = self.listens.to_string();
        }
    }

    /// Whether a stream that follows a run should retry: the shard is being reopened, here or on
    /// another node, and the caller has done nothing wrong. Waits before it answers. If this server
    /// has lost its lease, it may be cut off from its store for long, so the caller should follow
    /// the run at another server instead.
    pub(crate) async fn goes_on(&self, failed: &CallError) -> bool {
        let goes_on = failed.passing() && self.engine.joined() && !self.engine.stopping();
        if goes_on {
            tokio::time::sleep(REOPENING).await;
        }
        goes_on
    }

    /// Counters of client calls and of worker completions.
    pub(crate) fn results(&self) -> (&Results, &Results) {
        (&self.calls, &self.completions)
    }

    /// Reads the queue and number of a credit, and checks the queue against the limits.
    pub(crate) fn credit(&self, credit: Credit) -> Result<(QueueKey, usize), CallError> {
        let (queue, credits) = credit_from_wire(credit)?;
        self.engine.check_namespace(&queue.namespace)?;
        self.engine.limits().check_name("queue", &queue.queue)?;
        Ok((queue, credits))
    }

    /// The bound on frame size that clients and workers are told.
    pub(crate) fn message_bytes(&self) -> u64 {
        u64::try_from(self.bounds.message_bytes).unwrap_or(u64::MAX)
    }
}

/// The turn of an answer that takes much memory and time to build.
pub(crate) struct Building {
    _asked: Option<OwnedSemaphorePermit>,
    _turn: Option<Turn>,
}

/// Whether the answer may be large.
pub(crate) fn may_be_large(operation: &AnyOperation) -> bool {
    operation.name().answer_size() != AnswerSize::Small
}

/// Whether building the answer takes much memory and time.
pub(crate) fn is_built(operation: &AnyOperation) -> bool {
    operation.name().answer_size() == AnswerSize::Built
}

/// Refuses a call whose answer may be long in coming while the connection has its share of bytes that
/// wait with such calls. Its other calls go on.
pub(crate) fn may_wait(connection: &Connection, operation: &AnyOperation) -> Result<(), CallError> {
    if operation.waits() && connection.pending_full() {
        return Err(over("bytes of the connection's calls in flight", connection.share()));
    }
    Ok(())
}

/// The error for a request over a bound of the server.
pub(crate) fn over(what: &'static str, limit: usize) -> CallError {
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    CallError::Refused(Refusal::Limit(Exceeded { what: what.into(), limit }))
}

pub(crate) fn status(failed: impl Into<CallError>) -> Status {
    error::to_status(error::to_detail(failed.into()))
}
