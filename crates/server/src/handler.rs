//! Passes operations to the engine. Single calls and streams of calls share it.

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

use crate::{
    Bounds,
    guests::{Building, Guest, Guests},
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
    streams: Arc<Semaphore>,
    pub(crate) guests: Arc<Guests>,
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

    /// Performs an operation that is part of answering another one, without counting it.
    pub(crate) async fn look<O: Operation>(&self, operation: O) -> Result<O::Answer, CallError> {
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

    /// A permit for a long-lived stream, to be held until the stream ends.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, Status> {
        let place = Arc::clone(&self.streams).try_acquire_owned();
        place.map_err(|_| exceeded("streams of the server", self.bounds.streams))
    }

    /// Number of open long-lived streams.
    pub(crate) fn open_streams(&self) -> usize {
        self.bounds.streams.saturating_sub(self.streams.available_permits())
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

/// How much an answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerSize {
    /// Less than its request.
    Small,
    /// The data of one run, once it is there.
    Large,
    /// All that is known about one run, or many rows of the store: building it takes much memory and
    /// time.
    Built,
}

const fn answer_size(operation: &AnyOperation) -> AnswerSize {
    match operation.name() {
        OperationName::Start
        | OperationName::Signal
        | OperationName::Cancel
        | OperationName::Terminate
        | OperationName::Pause
        | OperationName::Unpause
        | OperationName::RescheduleTimer
        | OperationName::Repair
        | OperationName::AwaitEvents
        | OperationName::ReportAttempt
        | OperationName::CountRuns
        | OperationName::ListNodes => AnswerSize::Small,
        OperationName::Update
        | OperationName::AwaitUpdate
        | OperationName::Query
        | OperationName::AwaitClose
        | OperationName::AwaitWaits => AnswerSize::Large,
        OperationName::Describe
        | OperationName::History
        | OperationName::ListRuns
        | OperationName::ListWaits
        | OperationName::Tally => AnswerSize::Built,
    }
}

/// Whether the answer may be large.
pub(crate) fn may_be_large(operation: &AnyOperation) -> bool {
    answer_size(operation) != AnswerSize::Small
}

/// Whether building the answer takes much memory and time.
pub(crate) fn is_built(operation: &AnyOperation) -> bool {
    answer_size(operation) == AnswerSize::Built
}

/// Waits until the answer may be built, if building it takes much memory and time.
pub(crate) async fn turn(guest: &Guest, operation: &AnyOperation) -> Option<Building> {
    match answer_size(operation) {
        AnswerSize::Small | AnswerSize::Large => None,
        AnswerSize::Built => Some(guest.build_answer().await),
    }
}

/// The status for a request over a bound of the server.
pub(crate) fn exceeded(what: &'static str, limit: usize) -> Status {
    status(over(what, limit))
}

/// The error for a request over a bound of the server.
pub(crate) fn over(what: &'static str, limit: usize) -> CallError {
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    CallError::Refused(Refusal::Limit(Exceeded { what: what.into(), limit }))
}

pub(crate) fn status(failed: impl Into<CallError>) -> Status {
    error::to_status(error::to_detail(failed.into()))
}
