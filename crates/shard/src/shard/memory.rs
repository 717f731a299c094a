//! What a shard knows only in memory. It is read again from the store, or asked again by callers,
//! so a reset drops all of it at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use abide_core::{
    dispatch::QueueKey,
    ids::{EventNumber, RunId, ShardId, WorkflowKey},
    limits::Limits,
    operation::Ticket,
};
use abide_store::rows::TaskKey;

use super::{
    absent::AbsentRuns,
    attempts::HandedAttempt,
    attributes::Registered,
    backlog::HeldQueues,
    due::QuietRuns,
    gate::Gates,
    load::{HeadSearch, Load, Reading},
    outbox::Outgoing,
    query::Queries,
    request::Request,
    todo::Todo,
    update::Begun,
    waiters::Waiters,
};
use crate::{alarm::Alarms, cache::Cache, message::EffectKey, pipeline::Pipeline};

/// Everything that a reset drops.
#[derive(Debug)]
pub(super) struct Memory {
    /// Why the store accepts no writes, while that lasts. Meanwhile the shard is not open, but
    /// serves calls that change nothing.
    pub(super) read_only: Option<String>,
    pub(super) reads: BTreeMap<Ticket, Reading>,
    /// Completed starts whose call still waits for its update.
    pub(super) begun: BTreeMap<Ticket, Begun>,
    /// Requests that wait until the shard is open.
    pub(super) early: Vec<(Ticket, Request)>,
    pub(super) cache: Cache,
    /// What is left of evicted runs with work in flight.
    pub(super) absent: AbsentRuns,
    /// The alarm is set that evicts a run too large to be cached.
    pub(super) resting: bool,
    pub(super) loads: BTreeMap<RunId, Load>,
    pub(super) heads: BTreeMap<WorkflowKey, HeadSearch>,
    /// Work parked for a busy run until its workflow task ends.
    pub(super) busy: BTreeMap<RunId, VecDeque<Todo>>,
    /// The runs for which requests are parked.
    pub(super) parked: BTreeMap<Ticket, RunId>,
    /// Parked work that can go on; taken up when the current message is handled.
    pub(super) woken: VecDeque<(RunId, Todo)>,
    pub(super) pipeline: Pipeline,
    pub(super) alarms: Alarms,
    pub(super) waiters: Waiters,
    pub(super) queries: Queries,
    pub(super) attempts: BTreeMap<(RunId, EventNumber), HandedAttempt>,
    pub(super) outgoing: Outgoing,
    /// Effects of other shards that are being applied, to ignore duplicates.
    pub(super) incoming: BTreeSet<EffectKey>,
    pub(super) quiet: QuietRuns,
    pub(super) gates: Gates,
    /// Where the last refill of each queue ended.
    pub(super) refilled: BTreeMap<QueueKey, TaskKey>,
    pub(super) held: HeldQueues,
    /// Which search attributes there are.
    pub(super) registered: Registered,
}

impl Memory {
    /// The memory of a shard that is not open.
    pub(super) fn new(shard: ShardId, limits: &Limits) -> Self {
        Self {
            read_only: None,
            reads: BTreeMap::new(),
            begun: BTreeMap::new(),
            early: Vec::new(),
            cache: Cache::default(),
            absent: AbsentRuns::default(),
            resting: false,
            loads: BTreeMap::new(),
            heads: BTreeMap::new(),
            busy: BTreeMap::new(),
            parked: BTreeMap::new(),
            woken: VecDeque::new(),
            pipeline: Pipeline::new(shard, 0, false),
            alarms: Alarms::new(limits.near_timers),
            waiters: Waiters::default(),
            queries: Queries::default(),
            attempts: BTreeMap::new(),
            outgoing: Outgoing::default(),
            incoming: BTreeSet::new(),
            quiet: QuietRuns::default(),
            gates: Gates::default(),
            refilled: BTreeMap::new(),
            held: HeldQueues::default(),
            registered: Registered::default(),
        }
    }
}
