//! Workers: sessions with credits that come, lose their stream, come back, die and are replaced.

use std::collections::BTreeMap;

use abide_core::{
    call::{Call as Request, CallError, CallReply, Dispatch, WorkKind, Worker as Taker},
    ids::{BuildId, EventNumber, RunId, SessionId, ShardId, StartId},
};
use abide_shard::node::NodeInput;

use super::{
    Event, World,
    attempts::Held,
    calls::Caller,
    nodes::{Node, NodeEvent, NodeId},
    streams::Stream,
    turns::Answer,
};
use crate::{
    checks::Checked,
    code::Machine,
    programs::Build,
    schedule::{MILLIS, Micros, SECOND},
    settings::delay,
};

/// The one queue of a world.
pub(crate) const QUEUE: &str = "queue";

/// How many tasks of each kind a worker takes at once.
const CREDITS: usize = 3;

/// How soon all shards know that a session is over, if no node and no link is in trouble.
const TOLD_WITHIN: Micros = 200 * MILLIS;

/// A worker: a process that has one session at a time.
pub(crate) struct Worker {
    pub(super) session: SessionId,
    /// Counts sessions of the world: what belongs to an older one is void.
    pub(super) session_number: u64,
    pub(super) build: Build,
    pub(super) connected: bool,
    /// The node that it is connected to, or was last.
    pub(super) node: NodeId,
    /// Names its stream: what belongs to an older one is void.
    pub(super) stream: u64,
    /// How much more work it takes, as it said on this stream.
    pub(super) credits: BTreeMap<WorkKind, usize>,
    /// What it took on streams that have ended: a match that was under way then may come to the new one.
    pub(super) stale: BTreeMap<WorkKind, usize>,
    /// Runs in memory, least recently used first.
    pub(super) cache: Vec<(RunId, Machine)>,
    /// Turns that were answered, until the server has taken them.
    pub(super) turns: BTreeMap<(RunId, StartId), Machine>,
    pub(super) held: BTreeMap<(RunId, EventNumber), Held>,
}

/// Something that happens at a worker.
pub(crate) enum WorkerEvent {
    /// The stream is there.
    Connect,
    /// Work arrives on a stream.
    Work(u64, Box<Dispatch>),
    /// A workflow or query task is answered.
    Answer(Box<Answer>),
    /// A task that nobody will answer is given up.
    GiveUp(WorkKind),
    /// An attempt reports.
    Beat(RunId, EventNumber, u32),
    /// An attempt ends.
    Finish(RunId, EventNumber, u32),
    /// Attempts on this shard are presented.
    Present(ShardId),
    /// It notices that nobody answers on its stream.
    StreamDead(u64),
    /// The process begins.
    Begin,
}

/// What a worker asked a shard for.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    /// A workflow task was answered, with its turn.
    Turn(RunId, StartId),
    /// A task was failed, or a query answered.
    Other,
    /// An attempt's end.
    Resolve(RunId, EventNumber, u32),
    /// A sign of life, or an attempt presented.
    Alive(RunId, EventNumber, u32),
}

impl World {
    /// The workers at the beginning.
    pub(super) fn hire_workers(&mut self) {
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
            WorkerEvent::GiveUp(kind) => self.credit(index, kind, 1),
            WorkerEvent::Beat(run, scheduled, start) => self.beat(index, run, scheduled, start),
            WorkerEvent::Finish(run, scheduled, start) => self.finish(index, run, scheduled, start),
            WorkerEvent::Present(shard) => self.present(index, shard),
            WorkerEvent::StreamDead(stream) => match self.workers.get(index) {
                Some(worker) if worker.connected && worker.stream == stream => {
                    self.lose_stream(index)
                }
                _ => Ok(()),
            },
            WorkerEvent::Begin => self.begin_worker(index),
        }
    }

    /// The worker gets a stream at some node: it says what it can take and what it still holds.
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
        for (kind, credits) in std::mem::take(&mut worker.credits) {
            *worker.stale.entry(kind).or_default() += credits;
        }
        let (session, stream) = (worker.session.clone(), worker.stream);
        let held = worker.held.values().filter(|held| !held.eager).count().min(CREDITS);
        let handle = Stream { number: stream, worker: index, session: number };
        let opened = NodeInput::StreamOpened { session, stream, handle };
        self.tell_node(node, NodeEvent::Input(Box::new(opened)))?;
        self.credit(index, WorkKind::Workflow, CREDITS)?;
        self.credit(index, WorkKind::Activity, CREDITS - held)?;
        for shard in crate::names::shards() {
            self.present(index, shard)?;
        }
        Ok(())
    }

    /// A worker asks for something of a shard, by the node that it is connected to.
    pub(super) fn worker_asks(&mut self, index: usize, request: Request, call: Call) {
        let Some(worker) = self.workers.get(index) else { return };
        let (session, node) = (worker.session_number, worker.node);
        let later = delay(&mut self.rng, 3 * MILLIS, false);
        self.call_at(node, later, Caller::Worker(index, session, call), Box::new(request));
    }

    /// The answer of a shard reaches a worker.
    pub(super) fn worker_replied(
        &mut self,
        index: usize,
        session: u64,
        call: Call,
        result: Result<CallReply, CallError>,
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
                self.told_alive(index, run, scheduled, start, &result)
            }
            Call::Other => Ok(()),
        }
    }

    /// The machine is gone that a worker had asked.
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

    /// The process dies and another takes its place. Whatever was planned for the old one is void.
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
        // Whoever was to come with other code comes too late.
        if let Some(worker) = self.workers.get_mut(index).filter(|_| self.calm) {
            worker.build = Build::Right;
        }
        self.connect(index)
    }

    /// How many workers of a build there are.
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
            cache: Vec::new(),
            turns: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }

    /// It has a stream.
    pub(super) const fn connected(&self) -> bool {
        self.connected
    }

    /// As shards and queues know it.
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
