//! Workers: sessions with credits that come, lose their stream, come back, die and are replaced.

use std::collections::BTreeMap;

use abide_core::{
    call::{Call as Request, CallError, CallReply, Dispatch, QueueKey, WorkKind, Worker as Taker},
    ids::{BuildId, EventNumber, RunId, SessionId, ShardId, StartId},
};
use abide_shard::{message::Message, queue::QueueMessage};

use super::{Caller, Event, World, attempts::Held, slots::SlotId, turns::Answer};
use crate::{
    checks::Checked,
    code::Machine,
    names::NAMESPACE,
    programs::Build,
    schedule::{MILLIS, Micros, SECOND},
    settings::delay,
};

/// The one queue of a world.
pub(crate) const QUEUE: &str = "queue";

/// How many tasks of each kind a worker takes at once.
const CREDITS: usize = 3;

/// A worker: a process that has one session at a time.
pub(crate) struct Worker {
    pub(super) session: SessionId,
    /// Counts sessions of the world: what belongs to an older one is void.
    pub(super) session_number: u64,
    pub(super) build: Build,
    connected: bool,
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
    /// Work arrives from a machine.
    Work(SlotId, Box<Dispatch>),
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
    /// The process begins anew, with another session.
    Restart(Build),
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
            self.workers.push(Worker {
                session,
                session_number,
                build,
                connected: false,
                cache: Vec::new(),
                turns: BTreeMap::new(),
                held: BTreeMap::new(),
            });
            let at = self.rng.below(50 * MILLIS);
            self.plan_in(at, Event::Worker(index, session_number, WorkerEvent::Connect));
        }
    }

    fn next_session(&mut self) -> (SessionId, u64) {
        self.sessions_made += 1;
        (format!("session{}", self.sessions_made).into(), self.sessions_made)
    }

    /// The worker that has this session and a stream.
    pub(super) fn worker_of(&self, session: &SessionId) -> Option<(usize, &Worker)> {
        let found = |(_, worker): &(usize, &Worker)| worker.session == *session;
        self.workers.iter().enumerate().find(found).filter(|(_, worker)| worker.connected)
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
            WorkerEvent::Work(slot, dispatch) => self.take_work(index, slot, *dispatch),
            WorkerEvent::Answer(answer) => self.answer(index, *answer),
            WorkerEvent::GiveUp(kind) => self.credit(index, kind, 1),
            WorkerEvent::Beat(run, scheduled, start) => self.beat(index, run, scheduled, start),
            WorkerEvent::Finish(run, scheduled, start) => self.finish(index, run, scheduled, start),
            WorkerEvent::Present(shard) => self.present(index, shard),
            WorkerEvent::Restart(build) => self.restart(index, build),
        }
    }

    /// The worker has a stream: it says what it can take and what it still holds.
    fn connect(&mut self, index: usize) -> Checked {
        let Some(worker) = self.workers.get_mut(index) else { return Ok(()) };
        if std::mem::replace(&mut worker.connected, true) {
            return Ok(());
        }
        let held = worker.held.values().filter(|held| !held.eager).count().min(CREDITS);
        self.credit(index, WorkKind::Workflow, CREDITS)?;
        self.credit(index, WorkKind::Activity, CREDITS - held)?;
        for shard in crate::names::shards() {
            self.present(index, shard)?;
        }
        Ok(())
    }

    /// The worker can take more.
    pub(super) fn credit(&mut self, index: usize, kind: WorkKind, credits: usize) -> Checked {
        let Some(worker) = self.workers.get(index).filter(|worker| worker.connected) else {
            return Ok(());
        };
        let worker = worker.taker();
        let queue = QueueKey { namespace: NAMESPACE.into(), queue: QUEUE.into(), kind };
        self.tell_queues(QueueMessage::Credit { queue, worker, credits })
    }

    fn take_work(&mut self, index: usize, slot: SlotId, dispatch: Dispatch) -> Checked {
        if self.workers.get(index).is_none_or(|worker| !worker.connected) {
            return Ok(());
        }
        match dispatch {
            Dispatch::Workflow { token, given, last_event, recent } => {
                self.take_turn(index, token, &given, last_event, recent)
            }
            Dispatch::Query { token, last_event, .. } => {
                self.take_query(index, slot, token, last_event)
            }
            Dispatch::Activity { token, given, eager } => {
                self.take_attempt(index, token, &given, eager);
                Ok(())
            }
        }
    }

    /// A worker asks the owner of a shard for something. Rarely, a former owner gets it.
    pub(super) fn worker_asks(
        &mut self,
        index: usize,
        shard: ShardId,
        request: Request,
        call: Call,
    ) {
        let Some(worker) = self.workers.get(index) else { return };
        let session = worker.session_number;
        let Some(slot) = self.addressed(shard) else {
            return self.worker_call_broke(index, session, call);
        };
        let ticket = self.ticket(slot, Caller::Worker(index, session, call));
        let later = delay(&mut self.rng, 3 * MILLIS, false);
        let message = Message::Call(ticket, Box::new(request));
        self.plan_in(later, Event::ToSlot(slot, message));
    }

    /// The machine that gets a call: the owner, or rarely a zombie.
    pub(super) fn addressed(&mut self, shard: ShardId) -> Option<SlotId> {
        let owner = self.owners.get(&shard).copied();
        let zombie = self
            .slots
            .iter()
            .find(|(id, slot)| slot.shard == shard && Some(**id) != owner)
            .map(|(id, _)| *id);
        match zombie {
            Some(zombie) if self.trouble(150) => Some(zombie),
            _ => owner,
        }
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

    /// The stream breaks. The process goes on, and comes back with the same session.
    pub(super) fn lose_stream(&mut self, index: usize) -> Checked {
        let grace = self.settings.limits.session_grace;
        let grace = Micros::try_from(grace.as_micros()).unwrap_or(SECOND);
        let Some(worker) = self.workers.get_mut(index) else { return Ok(()) };
        worker.connected = false;
        let (session, number) = (worker.session.clone(), worker.session_number);
        let back = self.rng.between(MILLIS, grace * 2);
        self.plan_in(back, Event::Worker(index, number, WorkerEvent::Connect));
        self.tell_gone(session)
    }

    /// The process dies and another takes its place.
    pub(super) fn kill(&mut self, index: usize, build: Build) -> Checked {
        let Some(worker) = self.workers.get_mut(index) else { return Ok(()) };
        worker.connected = false;
        let (session, number) = (worker.session.clone(), worker.session_number);
        let back = self.rng.between(MILLIS, SECOND);
        self.plan_in(back, Event::Worker(index, number, WorkerEvent::Restart(build)));
        self.tell_gone(session)
    }

    fn restart(&mut self, index: usize, build: Build) -> Checked {
        let (session, session_number) = self.next_session();
        if let Some(worker) = self.workers.get_mut(index) {
            let (cache, turns, held) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
            *worker =
                Worker { session, session_number, build, connected: false, cache, turns, held };
        }
        self.connect(index)
    }

    /// The server's side of a stream ends: queues and shards learn of it.
    fn tell_gone(&mut self, session: SessionId) -> Checked {
        self.send_to_all(&Message::SessionLost(session.clone()));
        self.tell_queues(QueueMessage::Gone(session))
    }

    /// All streams end with the server's process, which tells nobody.
    pub(super) fn cut_all_streams(&mut self) {
        for index in 0..self.workers.len() {
            let most = 2 * SECOND;
            let back = self.rng.between(MILLIS, most);
            if let Some(worker) = self.workers.get_mut(index) {
                worker.connected = false;
                let number = worker.session_number;
                self.plan_in(back, Event::Worker(index, number, WorkerEvent::Connect));
            }
        }
    }

    /// A shard has a new owner, or its owner begins anew: workers present what they hold there.
    pub(super) fn shard_opened(&mut self, shard: ShardId) {
        let grace = self.settings.limits.session_grace;
        let grace = Micros::try_from(grace.as_micros()).unwrap_or(SECOND);
        for index in 0..self.workers.len() {
            let most = if self.rng.chance(800) { grace / 2 } else { grace * 2 };
            let later = self.rng.between(5 * MILLIS, most.max(6 * MILLIS));
            if let Some(worker) = self.workers.get(index) {
                let number = worker.session_number;
                let event = WorkerEvent::Present(shard);
                self.plan_in(later, Event::Worker(index, number, event));
            }
        }
    }

    /// How many workers of a build there are.
    pub(super) fn workers_of(&self, build: Build) -> usize {
        self.workers.iter().filter(|worker| worker.build == build).count()
    }
}

impl Worker {
    /// It has a stream.
    pub(super) const fn connected(&self) -> bool {
        self.connected
    }

    /// As shards and queues know it.
    fn taker(&self) -> Taker {
        let build = match self.build {
            Build::Right => BuildId::from("right"),
            Build::Before => BuildId::from("before"),
            Build::Wrong => BuildId::from("wrong"),
        };
        let identity = format!("worker of {}", self.session);
        Taker { session: self.session.clone(), identity, build: Some(build) }
    }
}
