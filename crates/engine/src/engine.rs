//! The handle of an engine: calls go in, answers come out, workers connect.

use std::{collections::BTreeMap, sync::Arc};

use abide_core::{
    call::{Call, CallError, CallReply, Worker},
    event::Event,
    ids::{EventNumber, RunId, ShardId, WorkflowKey},
    limits::Limits,
    time::Timestamp,
};
use abide_store::{
    ReadError, RunFilter, Store, WaitFilter,
    rows::{RunRow, WaitRow},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use uuid::Uuid;

use crate::{
    clock::{Clock, SystemClock},
    driver::Driver,
    node::{Node, Post},
    session::Session,
};

/// How an engine runs.
#[derive(Clone)]
pub struct Options {
    /// The node's name in the store.
    pub name: String,
    /// All bounds.
    pub limits: Limits,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        let clock = Arc::new(SystemClock);
        Self { name: "local".into(), limits: Limits::default(), clock }
    }
}

/// Why the engine could not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The call was refused or failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A read failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// What is stored cannot be decoded.
    #[error("the history cannot be read: {0}")]
    History(String),
    /// The engine is shutting down, or its store has stopped.
    #[error("the engine has stopped")]
    Stopped,
}

/// A running engine.
pub struct Engine {
    node: Arc<Node>,
    drivers: JoinSet<()>,
}

impl Engine {
    /// Starts an engine on a store. All shards are its own.
    pub fn start(store: Arc<dyn Store>, options: Options) -> Self {
        let mut senders = BTreeMap::new();
        let mut receivers = Vec::new();
        for shard in ShardId::all() {
            let (sender, receiver) = mpsc::unbounded_channel();
            senders.insert(shard, sender);
            receivers.push((shard, receiver));
        }
        let Options { name, limits, clock } = options;
        let node = Arc::new(Node::new(store, clock, limits, name, senders));
        let mut drivers = JoinSet::new();
        for (shard, receiver) in receivers {
            drivers.spawn(Driver::new(shard, Arc::clone(&node), receiver).run());
        }
        Self { node, drivers }
    }

    /// Finishes what is in flight and stops. What was acknowledged is durable.
    pub async fn shutdown(mut self) {
        for shard in ShardId::all() {
            self.node.post(shard, Post::Close);
        }
        while self.drivers.join_next().await.is_some() {}
    }

    /// Makes a call to the shard of its workflow.
    pub async fn call(&self, call: Call) -> Result<CallReply, EngineError> {
        let shard = call.place().0.slot().shard();
        let (answer, reply) = oneshot::channel();
        self.node.post(shard, Post::Call(Box::new(call), answer));
        Ok(reply.await.map_err(|_| EngineError::Stopped)??)
    }

    /// A fresh run id.
    pub fn new_run_id(&self) -> RunId {
        RunId::from_parts(self.node.clock.now(), Uuid::new_v4().as_u128())
    }

    /// The present, as the engine sees it.
    pub fn now(&self) -> Timestamp {
        self.node.clock.now()
    }

    /// Connects a worker. What it is given arrives on the session.
    pub fn connect(&self, worker: Worker) -> Session {
        let given = self.node.connect(worker.session.clone());
        Session::new(Arc::clone(&self.node), worker, given)
    }

    /// Events of a run after event `after`, at most `up_to`.
    pub async fn history(
        &self,
        workflow: &WorkflowKey,
        run: RunId,
        after: EventNumber,
        up_to: EventNumber,
    ) -> Result<Vec<Event>, EngineError> {
        let shard = workflow.slot().shard();
        let page = self.node.limits.page_rows;
        let mut events = Vec::new();
        let mut sequence = 0;
        loop {
            let rows = self.node.store.log(shard, run, sequence, page).await?;
            let last_page = rows.len() < page;
            for row in rows {
                sequence = row.sequence;
                let decoded = abide_core::codec::decode_events(row.events)
                    .map_err(|error| EngineError::History(error.to_string()))?;
                events
                    .extend(decoded.into_iter().filter(|e| e.number > after && e.number <= up_to));
            }
            if last_page || events.last().is_some_and(|event| event.number >= up_to) {
                return Ok(events);
            }
        }
    }

    /// Runs over all shards, newest first.
    pub async fn runs(&self, filter: RunFilter, limit: usize) -> Result<Vec<RunRow>, EngineError> {
        Ok(self.node.store.runs(filter, limit).await?)
    }

    /// Waits over all shards, by their end.
    pub async fn waits(
        &self,
        filter: WaitFilter,
        limit: usize,
    ) -> Result<Vec<(ShardId, WaitRow)>, EngineError> {
        Ok(self.node.store.waits(filter, limit).await?)
    }
}
