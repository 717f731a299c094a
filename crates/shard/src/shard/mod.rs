//! The shard machine: it owns the runs of 64 slots, judges what happens to them and says what must be
//! written and sent. It handles the next input before the last batch is durable; whatever leaves the
//! shard waits for the batch it rests on.
//!
//! - `open`: taking the shard into memory, resets, the end of ownership.
//! - `close`: handing the shard over, and what is withheld without a lease.
//! - `load`: finding runs and folding their logs.
//! - `call`, `start`, `update`, `query`: requests of clients and workers.
//! - `transition`: one decision and everything that follows from it.
//! - `work`, `backlog`, `attempts`: what is offered, what is left as rows, what workers have.
//! - `outbox`, `effects`: what runs do to other workflows, out and in.
//! - `due`: alarms and the due index.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use abide_core::{
    dispatch::QueueKey,
    ids::{EventNumber, RunId, SessionId, ShardId, WorkflowKey},
    limits::Limits,
    operation::{CallError, Ticket},
    run::Context,
    time::Timestamp,
};
use abide_store::rows::TaskKey;

use crate::{
    alarm::Alarms,
    borders::Borders,
    cache::Cache,
    message::{EffectKey, Mail, Message, Output, Work},
    pipeline::Pipeline,
};

mod attempts;
mod backlog;
mod close;
mod due;
mod effects;
mod load;
mod open;
mod operation;
mod outbox;
mod query;
mod repair;
mod report;
mod request;
mod start;
mod transition;
mod update;
mod waiters;
mod work;

use attempts::Attempt;
use close::Closing;
use load::{HeadSearch, Load, Reading, Todo};
use open::State;
use outbox::Outgoing;
use query::PendingQuery;
use request::{Pending, Request};
use update::Begun;
use waiters::Waiters;

/// The present, randomness for new ids, and the state of the lease: machines have none of their own.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The present.
    pub now: Timestamp,
    /// Fresh for each message.
    pub entropy: u128,
    /// The lease is good: no other node can have changed what this one remembers. Without it no answer
    /// and no work leaves the shard.
    pub trusted: bool,
}

/// From here on, a clock that goes back was set, and is not merely corrected: what memory means to do
/// later would come late by as much.
const CLOCK_SET: Duration = Duration::from_secs(1);

/// One shard.
#[derive(Debug)]
pub struct Shard {
    id: ShardId,
    owner: String,
    limits: Arc<Limits>,
    borders: Arc<Borders>,
    moment: Moment,
    state: State,
    /// How far the shard is from being another node's.
    closing: Closing,
    /// The store said that somebody else has the shard; whether that is so, its row will tell.
    fenced: Option<String>,
    /// Why the store takes no writes, while that is so. Meanwhile the shard is not open, but answers calls
    /// that change nothing.
    read_only: Option<String>,
    opened_at: Timestamp,
    /// The shard's epoch: the incarnation in ids of task starts.
    epoch: u64,
    starts: u64,
    resets: u32,
    outputs: VecDeque<Output>,
    tickets: Ticket,
    reads: BTreeMap<Ticket, Reading>,
    /// Requests that have no answer yet.
    calls: BTreeMap<Ticket, Pending>,
    /// Starts that are done, of calls that wait for an update too.
    begun: BTreeMap<Ticket, Begun>,
    /// Requests that came before the shard was in memory.
    early: Vec<(Ticket, Request)>,
    cache: Cache,
    loads: BTreeMap<RunId, Load>,
    heads: BTreeMap<WorkflowKey, HeadSearch>,
    /// What waits for a busy run, until its workflow task ends.
    busy: BTreeMap<RunId, VecDeque<Todo>>,
    /// What no longer has to wait; taken up when the present decision is done.
    woken: VecDeque<(RunId, Todo)>,
    pipeline: Pipeline,
    /// The store has not answered the last batch yet.
    committing: bool,
    alarms: Alarms,
    waiters: Waiters,
    queries: BTreeMap<Ticket, PendingQuery>,
    attempts: BTreeMap<(RunId, EventNumber), Attempt>,
    outgoing: Outgoing,
    /// Effects of other shards that are being applied.
    incoming: BTreeSet<EffectKey>,
    /// How often the store refused writes of a run that it was given alone.
    refused: BTreeMap<RunId, u32>,
    /// How often it refused to begin a run: one of that id may be there, which is not at fault.
    unstarted: BTreeMap<RunId, u32>,
    /// Commits that must succeed before messages share a batch again.
    alone_for: u32,
    /// Where the last search for tasks that were left as rows ended, by queue.
    refilled: BTreeMap<QueueKey, TaskKey>,
    /// An alarm to send effects again is set.
    resend_set: bool,
    sweep_after: Option<RunId>,
    /// Due times that came true.
    fired: u64,
}

impl Shard {
    /// A shard that is not in memory yet; [`Message::Open`] takes it there.
    pub fn new(id: ShardId, owner: impl Into<String>, limits: Arc<Limits>) -> Self {
        let moment = Moment { now: Timestamp::EPOCH, entropy: 0, trusted: false };
        Self {
            id,
            owner: owner.into(),
            moment,
            state: State::Closed,
            closing: Closing::No,
            fenced: None,
            read_only: None,
            opened_at: Timestamp::EPOCH,
            epoch: 0,
            starts: 0,
            resets: 0,
            outputs: VecDeque::new(),
            tickets: 0,
            reads: BTreeMap::new(),
            calls: BTreeMap::new(),
            begun: BTreeMap::new(),
            early: Vec::new(),
            cache: Cache::default(),
            loads: BTreeMap::new(),
            heads: BTreeMap::new(),
            busy: BTreeMap::new(),
            woken: VecDeque::new(),
            pipeline: Pipeline::new(id, 0, false),
            committing: false,
            alarms: Alarms::new(limits.near_timers),
            waiters: Waiters::default(),
            queries: BTreeMap::new(),
            attempts: BTreeMap::new(),
            outgoing: Outgoing::default(),
            incoming: BTreeSet::new(),
            refused: BTreeMap::new(),
            unstarted: BTreeMap::new(),
            alone_for: 0,
            refilled: BTreeMap::new(),
            resend_set: false,
            sweep_after: None,
            fired: 0,
            limits,
            borders: Arc::default(),
        }
    }

    /// Lets commands through between namespaces; by default none.
    #[must_use]
    pub fn with_borders(mut self, borders: Arc<Borders>) -> Self {
        self.borders = borders;
        self
    }

    /// Handles one message. Drain [`Self::poll`] after it.
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
            Message::Refill(queue) => self.refill(queue),
            Message::NewBuild(queue, _) => self.new_build(queue),
            Message::SessionLost(session) => self.session_lost(&session),
            Message::Mail(Mail::Deliver(envelope)) => self.deliver(*envelope),
            Message::Mail(Mail::Answered(key, answer)) => self.effect_answered(key, answer),
            Message::Mail(Mail::Confirmed(key)) => self.effect_confirmed(&key),
            Message::SendAgain(shards) => self.send_again(&shards),
        }
        self.settle();
    }

    /// What the shard asks for, in order.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// How many timers, deadlines and retries fell due since this was last asked.
    pub fn take_fired(&mut self) -> u64 {
        std::mem::take(&mut self.fired)
    }

    /// When the shard wants a [`Message::Tick`]. One that closes only waits for the store.
    pub fn wake_at(&self) -> Option<Timestamp> {
        if self.closing != Closing::No {
            return None;
        }
        let read_at = self.alarms.read_at(self.limits.near_window);
        let read_at = read_at.filter(|_| self.state == State::Open);
        self.alarms.next_at().into_iter().chain(read_at).min()
    }

    /// The run as the shard knows it, if it is in memory. For checks.
    pub fn peek(&self, run: RunId) -> Option<&abide_core::run::Run> {
        self.cache.peek(run).map(|entry| &entry.run)
    }

    /// How many calls have no answer yet. For checks.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// The shard is in memory and serves calls.
    pub fn is_open(&self) -> bool {
        self.state == State::Open && self.closing == Closing::No
    }

    /// What comes while the shard is not in memory, or closes: the sender tries again or learns of it later.
    /// Queries need no more than that the store can be read.
    #[expect(clippy::wildcard_enum_match_arm, reason = "what changes anything is declined")]
    fn decline(&mut self, message: Message) {
        let served = self.closing == Closing::No;
        let reads = served && self.read_only.is_some();
        match message {
            // It may be time to open again.
            Message::Tick if served => self.tick(),
            Message::Matched(offer, worker) if reads && matches!(offer.work, Work::Query(_)) => {
                self.matched(offer, worker);
            }
            Message::Matched(offer, worker) => self.emit(Output::Unmatched(offer, worker)),
            Message::SessionLost(session) if reads => self.take_back_queries(&session),
            Message::Refill(_) if reads => self.reoffer_queries(),
            _ => {}
        }
    }

    /// After each message: forget what may leave memory, and commit what is ready.
    fn settle(&mut self) {
        while let Some((run, todo)) = self.woken.pop_front() {
            self.carry_on_woken(run, todo);
        }
        if self.closing == Closing::Lapsing {
            self.lapse();
        }
        self.pipeline.seal();
        let pipeline = &self.pipeline;
        self.cache.shrink(self.limits.cached_runs, |batch| pipeline.durable(batch));
        if self.state == State::Open
            && let Some(batch) = self.pipeline.take_batch()
        {
            self.commit(batch);
        }
        if self.is_open() {
            self.look_ahead();
        }
        self.release_if_idle();
    }

    /// Says what is asked for. Without a good lease, answers and work are withheld.
    fn emit(&mut self, output: Output) {
        match output {
            // What is remembered may be old. What was asked for may have happened, unless it was not served.
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
        let batch = self.cache.peek(run).map_or(0, |entry| entry.written_in);
        if let Some(output) = self.pipeline.after(batch, output) {
            self.release(output);
        }
    }

    /// Lets an output out whose batch is durable.
    fn release(&mut self, output: Output) {
        match &output {
            Output::Reply(ticket, _) | Output::Acknowledge(ticket, _)
                if self.calls.remove(ticket).is_none() =>
            {
                return;
            }
            Output::Mail(_, Mail::Answered(key, _)) => {
                self.incoming.remove(key);
            }
            Output::Dispatch(worker, dispatch) if self.is_over(dispatch) => {
                if let Some(offer) = self.credit_of(dispatch) {
                    let worker = worker.clone();
                    return self.emit(Output::Unmatched(offer, worker));
                }
            }
            _ => {}
        }
        self.emit(output);
    }

    fn context<'a>(moment: &Moment, limits: &'a Limits) -> Context<'a> {
        let next_run = RunId::from_parts(moment.now, moment.entropy);
        Context { now: moment.now, next_run, limits }
    }

    /// A new id for a run.
    fn draw_run(&mut self) -> RunId {
        let run = Self::context(&self.moment, &self.limits).next_run;
        self.stir();
        run
    }

    /// Randomness is used once: the next id of the same message is another one.
    fn stir(&mut self) {
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
        self.cache.peek(run).and_then(|entry| entry.affinity.clone())
    }
}
