//! A world: nodes with shards and queues, a store, workers and clients, driven by one seed on one
//! thread. Time is virtual; the next event is the earliest planned one. It drives the machines as
//! the engine does, with faults added.
//!
//! - `nodes`, `leases`: processes with their own leases and queues; `clocks`: their clocks.
//! - `slots`, `outputs`: shard machines, live ones and zombies; messages in, outputs out.
//! - `store`: commits and reads, and how they fail.
//! - `posts`: messages to the shards of a node.
//! - `machines`, `links`: node machines, and the links between them.
//! - `calls`: the path of a call to the node that serves its shard.
//! - `workers`, `streams`, `reading`, `credits`, `turns`, `locals`, `attempts`: sessions, workflow tasks, activities.
//! - `clients`, `requests`, `schedules`, `moves`, `helpers`, `blocked`: clients and their requests.
//! - `faults`: crashes, takeovers, steps of clocks, lost sessions.
//! - `ending`: faults stop, everything settles, and is checked.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    event::{Event as HistoryEvent, Fact},
    ids::{EventNumber, RunId, SessionId, ShardId},
    operation::{CallError, Ticket},
};
use abide_shard::message::Message;
use abide_store::{memory::Tables, rows::RegistryRow};
use bytes::Bytes;

use crate::{
    attributes,
    checks::{
        Checked, borders::Accepted, dispatches::Dispatches, ledger::Ledger, promises::Promises,
        races,
    },
    code,
    programs::Catalog,
    rng::Rng,
    sabotage::Saboteur,
    schedule::{Micros, SECOND, Schedule},
    settings::Settings,
    trace::Trace,
};

mod attempts;
mod blocked;
mod calls;
mod clients;
mod clocks;
mod course;
mod credits;
mod ending;
mod faults;
mod helpers;
mod leases;
mod links;
mod locals;
mod machines;
mod moves;
mod nodes;
mod outputs;
mod posts;
mod reading;
mod requests;
mod schedules;
mod slots;
mod store;
mod streams;
mod turns;
mod workers;

pub(crate) use streams::Stream;

use calls::{Asked, Told};
use clients::Operation;
use leases::RegistryRequest;
use links::Link;
use nodes::{Node, NodeEvent, NodeId};
use slots::{Slot, SlotId};
use workers::{Worker, WorkerEvent};

/// Size of a world's run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Inputs of shards: requests, matches, effects, lost sessions, due times.
    pub inputs: u64,
    /// All messages to shards, replies of the store and ticks included.
    pub messages: u64,
    pub faults: u64,
    pub runs: u64,
    /// Events in all histories.
    pub events: u64,
    pub timers: u64,
    /// Reschedules of timers.
    pub moves: u64,
    /// Tasks that saw both the firing of a timer and a signal.
    pub close_calls: u64,
    /// Acknowledged requests.
    pub acknowledged: u64,
}

impl Counts {
    /// Counts a run by its history.
    fn count(&mut self, history: &[HistoryEvent]) {
        let count = |counts: fn(&Fact) -> bool| {
            as_count(history.iter().filter(|event| counts(&event.body.fact)).count())
        };
        self.runs += 1;
        self.events += as_count(history.len());
        self.timers += count(|fact| matches!(fact, Fact::TimerStarted(_)));
        self.moves += count(|fact| matches!(fact, Fact::TimerRescheduled(_)));
        self.close_calls += as_count(races::close_calls(history));
    }

    pub const fn add(&mut self, other: &Self) {
        self.inputs += other.inputs;
        self.messages += other.messages;
        self.faults += other.faults;
        self.runs += other.runs;
        self.events += other.events;
        self.timers += other.timers;
        self.moves += other.moves;
        self.close_calls += other.close_calls;
        self.acknowledged += other.acknowledged;
    }
}

fn as_count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

pub struct World {
    rng: Rng,
    settings: Settings,
    catalog: Catalog,
    now: Micros,
    /// Time that all clocks have skipped.
    skipped: Micros,
    schedule: Schedule<Event>,
    tables: Tables,
    accepted: Accepted,
    nodes: Vec<Node>,
    processes_made: u64,
    links: BTreeMap<(NodeId, NodeId), Link>,
    /// Pairs of nodes of which the first cannot reach the second, with the end of the cut.
    cuts: BTreeMap<(NodeId, NodeId), Micros>,
    /// Until when a node or a link had a fault.
    disturbed: Micros,
    slots: BTreeMap<SlotId, Slot>,
    slots_made: SlotId,
    workers: Vec<Worker>,
    sessions_made: u64,
    streams_made: u64,
    operations: Vec<Operation>,
    tickets: BTreeMap<Ticket, Asked>,
    /// Calls by the numbers of their tries.
    tries: BTreeMap<Ticket, Ticket>,
    /// The last event that the answer of a query is based on.
    queried: BTreeMap<Ticket, (RunId, EventNumber)>,
    tickets_made: Ticket,
    /// Whether faults are over: everything is fast and nothing fails.
    calm: bool,
    ledger: Ledger,
    promises: Promises,
    dispatches: Dispatches,
    saboteur: Saboteur,
    counts: Counts,
    trace: Trace,
    /// Shards that are being reopened.
    reopening: BTreeSet<ShardId>,
    /// Open runs whose code does not fit their history, and since when.
    blocked: BTreeMap<RunId, Micros>,
    /// Runs whose writes were refused at random.
    refused: BTreeSet<RunId>,
    /// Until when the store's disk is full.
    full_until: Micros,
    /// When clocks skipped time since faults are over, and how much in all.
    skips: Vec<(Micros, Micros)>,
    /// Since when the due time of a timer is in the index.
    indexed: BTreeMap<(RunId, Bytes), Micros>,
}

pub(crate) enum Event {
    /// A machine checks the clock.
    Tick(SlotId, Micros),
    /// A message reaches a machine.
    ToSlot(SlotId, Message),
    /// An event at a process of a node.
    Node(NodeId, u64, NodeEvent),
    /// A process of a node starts.
    Start(NodeId),
    /// A stalled process continues.
    Thaw(NodeId, u64),
    /// The store executes a request about nodes' rows.
    Registry(NodeId, u64, RegistryRequest),
    /// A row is written although its write was reported as failed.
    LateRow(RegistryRow),
    /// The store executes a commit.
    Commit(SlotId, Box<abide_store::Batch>),
    /// A commit is applied although no machine waits for it any more.
    LateCommit(SlotId, Box<abide_store::Batch>),
    /// A shard is loaded into memory.
    Open(ShardId),
    /// A former owner notices that it lost the shard.
    Forget(SlotId),
    /// A reply reaches its caller.
    Reply(Ticket, Box<Result<Told, CallError>>),
    /// Something happens at a worker.
    Worker(usize, u64, WorkerEvent),
    /// A client continues with an operation.
    Client(usize),
    /// A client gives up waiting.
    ClientTimeout(usize, Ticket),
    /// The clock of a node, or of all, is set back.
    ClocksBack,
    /// The clock of a node is set to about the true time.
    CorrectClock(NodeId),
    /// All shards should know by now that a session is gone.
    SessionOver(SessionId, Micros),
    Fault,
}

impl World {
    /// The world of a seed, possibly with a saboteur.
    pub fn new(seed: u64, saboteur: Saboteur, trace: Trace) -> Self {
        code::begin_world();
        let mut rng = Rng::new(seed);
        let settings = Settings::draw(&mut rng);
        let catalog = Catalog::draw(&mut rng, saboteur.quirk());
        let accepted = Accepted::draw(&mut rng);
        let mut world = Self {
            rng,
            settings,
            catalog,
            now: 0,
            skipped: 0,
            schedule: Schedule::default(),
            tables: Tables::default(),
            accepted,
            nodes: Vec::new(),
            processes_made: 0,
            links: BTreeMap::new(),
            cuts: BTreeMap::new(),
            disturbed: 0,
            slots: BTreeMap::new(),
            slots_made: 0,
            workers: Vec::new(),
            sessions_made: 0,
            streams_made: 0,
            operations: Vec::new(),
            tickets: BTreeMap::new(),
            tries: BTreeMap::new(),
            queried: BTreeMap::new(),
            tickets_made: 0,
            calm: false,
            ledger: Ledger::default(),
            promises: Promises::default(),
            dispatches: Dispatches::default(),
            saboteur,
            counts: Counts::default(),
            trace,
            reopening: BTreeSet::new(),
            blocked: BTreeMap::new(),
            refused: BTreeSet::new(),
            full_until: 0,
            skips: Vec::new(),
            indexed: BTreeMap::new(),
        };
        world.begin();
        world
    }

    pub fn run(&mut self) -> Checked {
        let outcome = self.live_on();
        self.ledger.stories.values().for_each(|story| self.counts.count(&story.events));
        outcome
    }

    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// What happened, if that was recorded.
    pub fn trace(&self, run: Option<RunId>) -> Vec<String> {
        self.trace.of(run)
    }

    /// Plans everything: nodes, workers, requests, faults.
    fn begin(&mut self) {
        for row in attributes::registered() {
            self.tables.put_registry(row);
        }
        self.begin_nodes();
        self.start_workers();
        for index in 0..self.settings.operations {
            let at = self.rng.below(self.settings.span);
            let operation = usize::try_from(index).unwrap_or_default();
            self.operations.push(Operation::default());
            self.schedule.plan(at, Event::Client(operation));
        }
        for _ in 0..self.settings.planned_faults {
            let at = self.rng.below(self.settings.span);
            self.schedule.plan(at, Event::Fault);
        }
    }

    fn live_on(&mut self) -> Checked {
        self.run_until(self.settings.span)?;
        self.settle()
    }

    fn run_until(&mut self, end: Micros) -> Checked {
        while self.now < end {
            match self.schedule.take_next() {
                Some((at, event)) => {
                    self.now = self.now.max(at);
                    self.happen(event)?;
                }
                None => break,
            }
        }
        Ok(())
    }

    fn happen(&mut self, event: Event) -> Checked {
        let Some(event) = self.hold(event) else { return Ok(()) };
        match event {
            Event::Tick(slot, at) => self.tick(slot, at),
            Event::ToSlot(slot, message) => self.deliver(slot, message),
            Event::Node(node, process, event) => self.node_event(node, process, event),
            Event::Start(node) => self.start_node(node),
            Event::Thaw(node, process) => {
                self.thaw(node, process);
                Ok(())
            }
            Event::Registry(node, process, request) => {
                self.carry_out_registry(node, process, request);
                Ok(())
            }
            Event::LateRow(row) => {
                self.tables.put_registry(row);
                Ok(())
            }
            Event::Commit(slot, batch) => self.carry_out_commit(slot, *batch),
            Event::LateCommit(slot, batch) => self.apply(slot, &batch).map(|_| ()),
            Event::Open(shard) => self.open(shard),
            Event::Forget(slot) => self.drop_slot(slot),
            Event::Reply(ticket, result) => self.replied(ticket, *result),
            Event::Worker(worker, session, event) => self.worker_event(worker, session, event),
            Event::Client(operation) => self.ask(operation),
            Event::ClientTimeout(operation, ticket) => self.give_up_waiting(operation, ticket),
            Event::ClocksBack => {
                self.step_clocks(false);
                Ok(())
            }
            Event::CorrectClock(node) => {
                self.correct_clock(node);
                Ok(())
            }
            Event::SessionOver(session, since) => self.session_is_over(&session, since),
            Event::Fault => self.break_something(),
        }
    }

    fn plan_in(&mut self, delay: Micros, event: Event) {
        self.schedule.plan(self.now + delay, event);
    }

    /// Whether a fault happens now, which is then counted.
    fn trouble(&mut self, permille: u64) -> bool {
        let happens = !self.calm && self.rng.chance(permille);
        self.counts.faults += u64::from(happens);
        happens
    }

    /// Longest delay that the world itself causes.
    const fn longest_delay() -> Micros {
        5 * SECOND
    }
}
