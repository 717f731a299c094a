//! Workers: sessions with credit that connect, lose their stream, reconnect, die and are replaced.

use std::collections::BTreeMap;

use abide_core::{
    dispatch::{Dispatch, QueueKey, WorkKind, Worker as Taker},
    ids::{BuildId, EventNumber, RunId, SessionId, ShardId, StartId},
    operation::CallError,
    report::{Report, ReportAnswer},
};
use abide_shard::node::NodeInput;

use super::{
    Event, World,
    attempts::HeldAttempt,
    calls::{Asker, Request},
    credits::queue,
    nodes::{Node, NodeEvent, NodeId},
    reading::Unread,
    streams::Stream,
    turns::TurnEnd,
};
use crate::{
    checks::Checked,
    code::Machine,
    names::NAMESPACES,
    programs::Build,
    schedule::{MILLIS, Micros, SECOND},
    settings::delay,
};

/// The only queue of a namespace.
pub(crate) const QUEUE: &str = "queue";

/// How many tasks of each kind and namespace a worker accepts at the same time.
const CREDITS: usize = 3;

/// How soon all shards know that a session has ended, without faults of nodes or links.
const TOLD_WITHIN: Micros = 200 * MILLIS;

/// A worker: a process that has one session at a time.
pub(crate) struct Worker {
    pub(super) session: SessionId,
    /// Number of the session in the world: events of an older one are void.
    pub(super) session_number: u64,
    pub(super) build: Build,
    pub(super) connected: bool,
    /// Node that it is connected to, or was last.
    pub(super) node: NodeId,
    /// Identifies its stream: messages of an older one are void.
    pub(super) stream: u64,
    /// How much more work it accepts, as announced on this stream.
    pub(super) credits: BTreeMap<QueueKey, usize>,
    /// Credit on ended streams: a match that was in flight then may arrive on the new one.
    pub(super) stale: BTreeMap<QueueKey, usize>,
    /// What waits for it while it does not read.
    pub(super) unread: Option<Unread>,
    /// Cached runs, least recently used first.
    pub(super) cache: Vec<(RunId, Machine)>,
    /// Turns that were sent, until the server has accepted them.
    pub(super) turns: BTreeMap<(RunId, StartId), Machine>,
    pub(super) held: BTreeMap<(RunId, EventNumber), HeldAttempt>,
}

pub(crate) enum WorkerEvent {
    /// The stream is open.
    Connect,
    /// Work arrives on a stream.
    Work(u64, Box<Dispatch>),
    /// Replies to a workflow or query task.
    Answer(Box<TurnEnd>),
    /// Gives up a task that will get no reply.
    GiveUp(QueueKey),
    /// Reads again what comes on a stream.
    ReadOn(u64),
    Beat(RunId, EventNumber, u32),
    Finish(RunId, EventNumber, u32),
    /// Presents its attempts on this shard.
    Present(ShardId),
    /// Notices that its stream is dead.
    StreamDead(u64),
    Begin,
}

/// A worker's request to a shard.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    /// Completes a workflow task, with its turn.
    Turn(RunId, StartId),
    /// Fails a task, or answers a query.
    Other,
    Resolve(RunId, EventNumber, u32),
    /// Sends a heartbeat, or presents an attempt.
    Alive(RunId, EventNumber, u32),
}

impl World {
    /// Starts the initial workers.
    pub(super) fn start_workers(&mut self) {
        let third = match self.rng.weighted(&[4, 3, 3]) {
            0 => Build::Right,
            1 => Build::Before,
            _ => Build::Wrong,
        };
        let builds = [Build::Right, Build::Right, third];
        for (index, build) in builds.into_iter().enumerate() {
            let (session, session_number) = self.next_session();
            self.workers.push(Worker::new(session, session_number, build));
            let at = self.rng.below(50 * MILLIS);
            self.plan_in(at, Event::Worker(index, session_number, WorkerEvent::Connect));
        }
    }

    fn next_session(&mut self) -> (SessionId, u64) {
        self.sessions_made += 1;
        (format!("session{}", self.sessions_made).into(), self.sessions_made)
    }

    pub(super) fn worker_event(
        &mut self,
        index: usize,
        session: u64,
        event: WorkerEvent,
    ) -> Checked {
        if self.workers.get(index).is_none_or(|worker| worker.session_number != session) {
            return Ok(());
        }
        match event {
            WorkerEvent::Connect => self.connect(index),
            WorkerEvent::Work(stream, dispatch) => self.take_work(index, stream, *dispatch),
            WorkerEvent::Answer(answer) => self.answer(index, *answer),
            WorkerEvent::GiveUp(queue) => self.credit(index, queue, 1),
            WorkerEvent::Beat(run, scheduled, start) => self.beat(index, run, scheduled, start),
            WorkerEvent::Finish(run, scheduled, start) => self.finish(index, run, scheduled, start),
            WorkerEvent::Present(shard) => self.present(index, shard),
            WorkerEvent::StreamDead(stream) => match self.workers.get(index) {
                Some(worker) if worker.connected && worker.stream == stream => {
                    self.lose_stream(index)
                }
                _ => Ok(()),
            },
            WorkerEvent::ReadOn(stream) => self.read_on(index, stream),
            WorkerEvent::Begin => self.begin_worker(index),
        }
    }

    /// The worker opens a stream at some node, announces its credit and presents its attempts.
    fn connect(&mut self, index: usize) -> Checked {
        let Some(worker) = self.workers.get(index).filter(|worker| !worker.connected) else {
            return Ok(());
        };
        let number = worker.session_number;
        let Some(node) = self.some_node(|node: &Node| node.reachable() && !node.leaving) else {
            let again = Event::Worker(index, number, WorkerEvent::Connect);
            self.plan_in(200 * MILLIS, again);
            return Ok(());
        };
        self.streams_made += 1;
        let Some(worker) = self.workers.get_mut(index) else { return Ok(()) };
        worker.connected = true;
        worker.node = node;
        worker.stream = self.streams_made;
        worker.unread = None;
        for (queue, credits) in std::mem::take(&mut worker.credits) {
            *worker.stale.entry(queue).or_default() += credits;
        }
        let (session, stream) = (worker.session.clone(), worker.stream);
        let held = NAMESPACES.map(|namespace| {
            let own = |held: &&HeldAttempt| !held.eager && held.namespace().as_str() == namespace;
            worker.held.values().filter(own).count().min(CREDITS)
        });
        let handle = Stream { number: stream, worker: index, session: number };
        let opened = NodeInput::StreamOpened { session, stream, handle };
        self.tell_node(node, NodeEvent::Input(Box::new(opened)))?;
        for (namespace, held) in NAMESPACES.into_iter().zip(held) {
            let queue = |kind| queue(&namespace.into(), kind);
            self.credit(index, queue(WorkKind::Workflow), CREDITS)?;
            self.credit(index, queue(WorkKind::Activity), CREDITS - held)?;
        }
        for shard in crate::names::shards() {
            self.present(index, shard)?;
        }
        Ok(())
    }

    /// A worker sends a request to a shard, through the node that it is connected to.
    pub(super) fn worker_asks(&mut self, index: usize, report: Report, call: Call) {
        let Some(worker) = self.workers.get(index) else { return };
        let (session, node) = (worker.session_number, worker.node);
        let later = delay(&mut self.rng, 3 * MILLIS, false);
        let request = Request::Report(Box::new(report));
        self.call_at(node, later, Asker::Worker(index, session, call), request);
    }

    /// The reply of a shard reaches a worker.
    pub(super) fn worker_replied(
        &mut self,
        index: usize,
        session: u64,
        call: Call,
        result: Result<ReportAnswer, CallError>,
    ) -> Checked {
        if self.workers.get(index).is_none_or(|worker| worker.session_number != session) {
            return Ok(());
        }
        match call {
            Call::Turn(run, start) => self.turn_ended(index, run, start, &result),
            Call::Resolve(run, scheduled, start) => {
                self.resolved(index, run, scheduled, start, &result)
            }
            Call::Alive(run, scheduled, start) => {
                self.heartbeat_replied(index, run, scheduled, start, &result)
            }
            Call::Other => Ok(()),
        }
    }

    /// The machine that a worker had asked is gone.
    pub(super) fn worker_call_broke(&mut self, index: usize, session: u64, call: Call) {
        let Some(worker) = self.workers.get_mut(index) else { return };
        if worker.session_number != session {
            return;
        }
        match call {
            Call::Turn(run, start) => {
                worker.turns.remove(&(run, start));
            }
            Call::Resolve(run, scheduled, start) => self.try_again(index, run, scheduled, start),
            Call::Alive(..) | Call::Other => {}
        }
    }

    /// The process dies and another takes its place. Events planned for the old one are void.
    pub(super) fn kill(&mut self, index: usize, build: Build) -> Checked {
        self.tell_gone(index)?;
        let (session, number) = self.next_session();
        let Some(worker) = self.workers.get_mut(index) else { return Ok(()) };
        let gone = std::mem::replace(worker, Worker::new(session, number, build));
        let back = self.rng.between(MILLIS, SECOND);
        self.plan_in(back, Event::Worker(index, number, WorkerEvent::Begin));
        if self.leased() {
            self.plan_in(TOLD_WITHIN, Event::SessionOver(gone.session, self.now));
        }
        Ok(())
    }

    fn begin_worker(&mut self, index: usize) -> Checked {
        // Replacements with other code that were planned are dropped.
        if let Some(worker) = self.workers.get_mut(index).filter(|_| self.calm) {
            worker.build = Build::Right;
        }
        self.connect(index)
    }

    pub(super) fn workers_of(&self, build: Build) -> usize {
        self.workers.iter().filter(|worker| worker.build == build).count()
    }
}

impl Worker {
    fn new(session: SessionId, session_number: u64, build: Build) -> Self {
        Self {
            session,
            session_number,
            build,
            connected: false,
            node: 0,
            stream: 0,
            credits: BTreeMap::new(),
            stale: BTreeMap::new(),
            unread: None,
            cache: Vec::new(),
            turns: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }

    pub(super) const fn connected(&self) -> bool {
        self.connected
    }

    /// Identity that shards and queues use.
    pub(super) fn taker(&self) -> Taker {
        let build = match self.build {
            Build::Right => BuildId::from("right"),
            Build::Before => BuildId::from("before"),
            Build::Wrong => BuildId::from("wrong"),
        };
        let identity = format!("worker of {}", self.session);
        Taker { session: self.session.clone(), identity, build: Some(build) }
    }
}
