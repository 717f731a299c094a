//! The shard machine: it owns the runs of its slots, decides what each input does to them, and
//! outputs what must be written and sent. It handles the next input before the last batch is
//! durable; an output waits for the batch that it depends on.
//!
//! - `open`: opening the shard, resets, loss of ownership.
//! - `memory`: everything that a reset drops.
//! - `refusals`: runs whose writes the store refuses.
//! - `close`: handing the shard over, and withholding work without a valid lease.
//! - `load`: finding runs and folding their logs; `todo`: work that waits for it.
//! - `absent`: evicted runs with work in flight.
//! - `attributes`: search attributes in requests, which must be registered.
//! - `request`, `operation`, `report`, `start`, `update`, `query`: requests of clients and workers.
//! - `transition`: one decision and everything that follows from it.
//! - `work`, `backlog`, `attempts`: offers, task rows that wait in the store, attempts that workers
//!   have.
//! - `outbox`, `effects`, `expiry`: outgoing and incoming effects of runs on other workflows, and
//!   how long their answers are kept.
//! - `delete`, `reset`, `gate`: ends of runs that take a moment, and the work that waits for them.
//! - `due`: alarms and the due index.
//! - `repair`: rows that a run lacks or should not have.
//! - `waiters`: callers that wait for a run to change.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use abide_core::{
    ids::{RunId, SessionId, ShardId},
    limits::Limits,
    operation::{CallError, Ticket},
    run::Context,
    time::Timestamp,
};

use crate::{
    borders::Borders,
    cache::Cache,
    message::{Mail, Message, Output, Work},
};

mod absent;
mod attempts;
mod attributes;
mod backlog;
mod close;
mod delete;
mod due;
mod effects;
mod expiry;
mod gate;
mod load;
mod memory;
mod open;
mod operation;
mod outbox;
mod query;
mod refusals;
mod repair;
mod report;
mod request;
mod reset;
mod schedule;
mod start;
mod todo;
mod transition;
mod update;
mod waiters;
mod work;

use close::Closing;
use expiry::Expiry;
use load::{Load, Reading};
use memory::Memory;
use open::State;
use refusals::Refusals;
use request::{Request, Unanswered};
use todo::Todo;

/// The time, randomness for new ids, and the state of the lease: a machine has none of its own.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now: Timestamp,
    /// Randomness for new run ids; fresh for each message.
    pub entropy: u128,
    /// The lease is valid: no other node can have changed what this one remembers. Without it no
    /// answer and no work leaves the shard.
    pub trusted: bool,
}

/// A clock that goes back by at least this much was set, not merely corrected: alarms in memory
/// would be late by as much.
const CLOCK_SET: Duration = Duration::from_secs(1);

/// The state of one shard.
#[derive(Debug)]
pub struct Shard {
    id: ShardId,
    owner: String,
    limits: Arc<Limits>,
    borders: Arc<Borders>,
    moment: Moment,
    state: State,
    /// Progress of handing the shard over to another node.
    closing: Closing,
    /// A commit failed with a stale epoch: the shard's row will show whether another process owns
    /// it.
    fenced: Option<String>,
    /// The shard's row names this process, so no other can write to the shard.
    claimed: bool,
    /// The shard's row named another process when this incarnation began, so every attempt that it finds is
    /// of a worker of that process.
    inherited: bool,
    opened_at: Timestamp,
    /// The shard's epoch, which is also the incarnation in [`StartId`](abide_core::ids::StartId)s.
    epoch: u64,
    starts: u64,
    resets: u32,
    outputs: VecDeque<Output>,
    tickets: Ticket,
    /// Requests without an answer.
    calls: BTreeMap<Ticket, Unanswered>,
    /// A commit is in flight.
    committing: bool,
    refusals: Refusals,
    /// Where the next sweep continues.
    sweep_after: Option<RunId>,
    expiry: Expiry,
    /// Number of timers, deadlines and retries that fell due since [`Self::take_fired`].
    fired: u64,
    memory: Memory,
}

impl Shard {
    /// A shard that is not in memory yet; [`Message::Open`] opens it.
    pub fn new(id: ShardId, owner: impl Into<String>, limits: Arc<Limits>) -> Self {
        let moment = Moment { now: Timestamp::EPOCH, entropy: 0, trusted: false };
        Self {
            id,
            owner: owner.into(),
            moment,
            state: State::Closed,
            closing: Closing::No,
            fenced: None,
            claimed: false,
            inherited: false,
            opened_at: Timestamp::EPOCH,
            epoch: 0,
            starts: 0,
            resets: 0,
            outputs: VecDeque::new(),
            tickets: 0,
            calls: BTreeMap::new(),
            committing: false,
            refusals: Refusals::default(),
            sweep_after: None,
            expiry: Expiry::default(),
            fired: 0,
            memory: Memory::new(id, &limits),
            limits,
            borders: Arc::default(),
        }
    }

    /// Sets which commands between namespaces are allowed; none by default.
    #[must_use]
    pub fn with_borders(mut self, borders: Arc<Borders>) -> Self {
        self.borders = borders;
        self
    }

    /// Handles one message. Drain [`Self::poll`] after it, or after several that have come together.
    pub fn handle(&mut self, moment: Moment, message: Message) {
        let before = std::mem::replace(&mut self.moment, moment).now;
        if before.saturating_since(moment.now) >= CLOCK_SET && self.state != State::Halted {
            self.clock_set_back();
        }
        match message {
            Message::Open => self.open(),
            Message::Close => self.hand_over(),
            Message::Lapse => self.lapse(),
            Message::Ask(ticket, _) if self.closing != Closing::No => {
                self.emit(Output::Reply(ticket, Err(CallError::NotServed)));
            }
            Message::Report(ticket, _) if self.closing != Closing::No => {
                self.emit(Output::Acknowledge(ticket, Err(CallError::NotServed)));
            }
            Message::Ask(ticket, asked) => self.receive(ticket, Request::Operation(asked)),
            Message::Report(ticket, report) => self.receive(ticket, Request::Report(report)),
            Message::Forget(ticket) => self.forget(ticket),
            Message::Fetched(ticket, fetched) => self.fetched(ticket, fetched),
            Message::Committed(result) => self.committed(result),
            _ if !self.is_open() => self.decline(message),
            Message::Tick => self.tick(),
            Message::Matched(offer, worker) => self.matched(offer, worker),
            Message::Refill(queue) => self.refill(&queue),
            Message::NewBuild(queue, _) => self.new_build(&queue),
            Message::SessionLost(session) => self.session_lost(&session),
            Message::Mail(Mail::Deliver(envelope)) => self.deliver(*envelope),
            Message::Mail(Mail::Answered(key, answer)) => self.effect_answered(key, answer),
            Message::Mail(Mail::Confirmed(key)) => self.effect_confirmed(&key),
            Message::Mail(Mail::Senseless(key)) => self.effect_senseless(key),
            Message::SendAgain(shards) => self.send_again(&shards),
        }
        self.settle();
    }

    /// Takes the next output, in order. The commit comes last: it holds what all messages so far have
    /// written, unless one is in flight.
    pub fn poll(&mut self) -> Option<Output> {
        if self.outputs.is_empty()
            && self.has_writes()
            && let Some(batch) = self.memory.pipeline.take_batch()
        {
            self.commit(batch);
        }
        self.outputs.pop_front()
    }

    /// Whether writes wait that the store would accept.
    fn has_writes(&self) -> bool {
        self.state == State::Open && self.memory.pipeline.waits()
    }

    /// Number of timers, deadlines and retries that fell due since the last call.
    pub fn take_fired(&mut self) -> u64 {
        std::mem::take(&mut self.fired)
    }

    /// When to send [`Message::Tick`]. A closing shard waits only for the store.
    pub fn wake_at(&self) -> Option<Timestamp> {
        if self.closing != Closing::No {
            return None;
        }
        let read_at = self.memory.alarms.read_at(self.limits.near_window);
        let read_at = read_at.filter(|_| self.state == State::Open);
        self.memory.alarms.next_at().into_iter().chain(read_at).min()
    }

    /// The run, if it is in memory. For checks.
    pub fn peek(&self, run: RunId) -> Option<&abide_core::run::Run> {
        self.memory.cache.peek(run).map(|entry| &entry.run)
    }

    /// Number of calls without an answer. For checks.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Whether the shard is in memory and serves calls.
    pub fn is_open(&self) -> bool {
        self.state == State::Open && self.closing == Closing::No
    }

    /// Handles a message that arrives while the shard is not in memory or closes: the sender
    /// retries, or is updated later. Queries are served as long as the store can be read.
    #[expect(clippy::wildcard_enum_match_arm, reason = "what changes anything is declined")]
    fn decline(&mut self, message: Message) {
        let served = self.closing == Closing::No;
        let reads = served && self.memory.read_only.is_some();
        match message {
            // The reopen alarm may be due.
            Message::Tick if served => self.tick(),
            Message::Matched(offer, worker) if reads && matches!(offer.work, Work::Query(_)) => {
                self.matched(offer, worker);
            }
            Message::Matched(offer, worker) => self.emit(Output::Unmatched(offer, worker)),
            Message::SessionLost(session) => {
                self.end_presentations(&session);
                if reads {
                    self.take_back_queries(&session);
                }
            }
            Message::Refill(_) if reads => self.reoffer_queries(),
            _ => {}
        }
    }

    /// After each message: resumes parked work, drops memory without a lease, evicts, reads
    /// ahead, and releases a shard that closes.
    fn settle(&mut self) {
        while let Some((run, todo)) = self.memory.woken.pop_front() {
            self.carry_on_woken(run, todo);
        }
        if self.closing == Closing::Lapsing {
            self.lapse();
        }
        if self.others_may_write() {
            self.memory.cache = Cache::default();
            self.memory.absent = Default::default();
        }
        self.memory.pipeline.seal();
        self.evict();
        if self.is_open() {
            self.look_ahead();
        }
        self.release_if_idle();
    }

    /// Adds an output. Without a valid lease, answers and work are withheld.
    fn emit(&mut self, output: Output) {
        match output {
            // Memory may be stale, so the outcome is unknown to the caller, unless the call was not
            // served at all.
            Output::Reply(ticket, reply)
                if !self.moment.trusted && !matches!(reply, Err(CallError::NotServed)) =>
            {
                self.outputs.push_back(Output::Reply(ticket, Err(CallError::Reset)));
            }
            Output::Acknowledge(ticket, answer)
                if !self.moment.trusted && !matches!(answer, Err(CallError::NotServed)) =>
            {
                self.outputs.push_back(Output::Acknowledge(ticket, Err(CallError::Reset)));
            }
            Output::Dispatch(worker, dispatch) if !self.moment.trusted => {
                self.withhold(worker, &dispatch);
            }
            output => self.outputs.push_back(output),
        }
    }

    fn emit_after(&mut self, run: RunId, output: Output) {
        let batch = self.memory.cache.peek(run).map_or(0, |entry| entry.written_in);
        if let Some(output) = self.memory.pipeline.after(batch, output) {
            self.release(output);
        }
    }

    /// Emits an output whose batch is durable.
    fn release(&mut self, output: Output) {
        match &output {
            Output::Reply(ticket, _) | Output::Acknowledge(ticket, _)
                if self.calls.remove(ticket).is_none() =>
            {
                return;
            }
            Output::Mail(_, Mail::Answered(key, _)) => {
                self.memory.incoming.remove(key);
            }
            // A slot that a worker promised for eager work is free again with the acknowledgement.
            Output::Dispatch(worker, dispatch) if self.is_over(dispatch) => {
                if let Some(offer) = self.credit_of(dispatch) {
                    self.emit(Output::Unmatched(offer, worker.clone()));
                }
                return;
            }
            _ => {}
        }
        self.emit(output);
    }

    fn context<'a>(moment: &Moment, limits: &'a Limits) -> Context<'a> {
        let next_run = RunId::from_parts(moment.now, moment.entropy);
        Context { now: moment.now, next_run, limits }
    }

    /// Draws a new run id.
    fn draw_run(&mut self) -> RunId {
        let run = Self::context(&self.moment, &self.limits).next_run;
        self.advance_entropy();
        run
    }

    /// Advances the entropy, so that the next id drawn for the same message differs.
    fn advance_entropy(&mut self) {
        self.moment.entropy = self
            .moment
            .entropy
            .wrapping_mul(0x2d99_7879_26d4_6932_a4c1_f326_80f7_0c55)
            .wrapping_add(1);
    }

    fn now(&self) -> Timestamp {
        self.moment.now
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        self.tickets
    }

    fn session_of(&self, run: RunId) -> Option<SessionId> {
        self.memory.cache.peek(run).and_then(|entry| entry.affinity.clone())
    }
}
