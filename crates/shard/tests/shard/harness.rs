//! A small world for directed tests: shards on the in-memory store, driven step by step, with a clock
//! that only the test advances. The test decides when commits are answered.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use abide_core::{
    codec,
    command::{Ask, Command},
    dispatch::{Dispatch, Worker},
    event::{ActivitySpec, Delivery, Fact, RunSpec, SignalReceived, TimerSpec},
    ids::{RunId, ShardId, WorkflowKey},
    limits::Limits,
    operation::{
        AnyAnswer, CallError, ConflictPolicy, Describe, RunOperation, RunTarget, Signal, Start,
        Started, Ticket,
    },
    payload::Payload,
    report::{Report, ReportAnswer, TaskCompletion, TaskToken},
    run::{Description, Run},
    search::Definitions,
    time::Timestamp,
};
use abide_shard::{
    borders::Borders,
    message::{Fetch, Fetched, Halt, Mail, Message, Notice, Offer, Output},
    shard::{Moment, Shard},
};
use abide_store::{
    Batch, CommitError, ReadError, WaitFilter,
    memory::Tables,
    rows::{Loaded, LogLimit, LogRow},
};

/// Shards on one store.
pub(crate) struct World {
    pub(crate) now: Timestamp,
    /// Owner name that opened shards write to the store.
    pub(crate) owner: &'static str,
    pub(crate) tables: Tables,
    pub(crate) shards: BTreeMap<ShardId, Shard>,
    /// Commits in flight, answered by [`World::commit`].
    pub(crate) commits: VecDeque<Batch>,
    /// Whether commits are answered immediately.
    pub(crate) commit_at_once: bool,
    /// The error with which the store answers every commit, if set.
    pub(crate) trouble: Option<CommitError>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) reads: Reads,
    /// Rows of the largest page of a log that was read.
    pub(crate) largest_page: usize,
    /// Reads in flight, answered by [`World::answer_read`].
    pub(crate) held: VecDeque<(ShardId, Message)>,
    pub(crate) replies: BTreeMap<Ticket, Result<AnyAnswer, CallError>>,
    /// Messages that were sent to workers.
    pub(crate) acknowledged: BTreeMap<Ticket, Result<ReportAnswer, CallError>>,
    pub(crate) offers: Vec<Offer>,
    pub(crate) dispatches: Vec<Dispatch>,
    pub(crate) halted: Vec<Halt>,
    /// Number of released shards.
    pub(crate) released: usize,
    /// Whether the lease is valid.
    pub(crate) trusted: bool,
    /// Number of reads of task rows.
    pub(crate) task_reads: usize,
    /// Number of effects sent to other shards.
    pub(crate) delivered: usize,
    /// Whether effects sent to other shards are lost on their way.
    pub(crate) mail_lost: bool,
    /// Matches that the shard declined.
    pub(crate) unmatched: usize,
    pub(crate) entropy: u128,
    /// Number of outputs that shards have produced.
    pub(crate) outputs: usize,
    /// Output number at which a crash happens instead of the output, and what crashes.
    pub(crate) fuse: Option<(usize, Crash)>,
    tickets: Ticket,
    limits: Arc<Limits>,
    pub(crate) borders: Arc<Borders>,
}

/// What loses its memory in a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    /// All shards and all messages in flight.
    All,
    /// Only the shard.
    Shard,
}

/// How reads are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Immediately.
    Answered,
    /// Later, with the data at the time of the request.
    Held,
    /// With an error.
    Failing,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        Self {
            now: Timestamp::from_unix_millis(1_800_000_000_000),
            owner: "node",
            tables: Tables::default(),
            shards: BTreeMap::new(),
            commits: VecDeque::new(),
            commit_at_once: true,
            trouble: None,
            notices: Vec::new(),
            reads: Reads::Answered,
            largest_page: 0,
            held: VecDeque::new(),
            replies: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            offers: Vec::new(),
            dispatches: Vec::new(),
            halted: Vec::new(),
            released: 0,
            trusted: true,
            task_reads: 0,
            delivered: 0,
            mail_lost: false,
            unmatched: 0,
            tickets: 0,
            entropy: 1,
            outputs: 0,
            fuse: None,
            limits: Arc::new(limits),
            borders: Arc::default(),
        }
    }

    /// Sends a message to a shard, and opens the shard first if necessary.
    pub(crate) fn send(&mut self, shard: ShardId, message: Message) {
        if !self.shards.contains_key(&shard) {
            let limits = Arc::clone(&self.limits);
            let machine = Shard::new(shard, self.owner, limits);
            self.shards.insert(shard, machine.with_borders(Arc::clone(&self.borders)));
            self.deliver(shard, Message::Open);
        }
        self.deliver(shard, message);
    }

    fn deliver(&mut self, id: ShardId, message: Message) {
        let mut messages = VecDeque::from([(id, message)]);
        while let Some((id, message)) = messages.pop_front() {
            self.entropy += 1;
            let moment = Moment { now: self.now, entropy: self.entropy, trusted: self.trusted };
            let Some(shard) = self.shards.get_mut(&id) else { continue };
            shard.handle(moment, message);
            while let Some(output) = self.shards.get_mut(&id).and_then(Shard::poll) {
                self.outputs += 1;
                match self.fuse.filter(|(number, _)| *number == self.outputs) {
                    Some((_, Crash::All)) => return self.crash(),
                    Some((_, Crash::Shard)) => drop(self.shards.remove(&id)),
                    None => messages.extend(self.carry_out(id, output)),
                }
            }
        }
    }

    fn carry_out(&mut self, id: ShardId, output: Output) -> Option<(ShardId, Message)> {
        match output {
            Output::Fetch(ticket, fetch) => {
                self.task_reads += usize::from(matches!(fetch, Fetch::Tasks(..)));
                let fetched = match self.reads {
                    Reads::Answered | Reads::Held => Ok(self.fetch(id, fetch)),
                    Reads::Failing => Err(ReadError::Unavailable("no answer".into())),
                };
                if let Ok(Fetched::Log(rows) | Fetched::Load(Loaded { log: rows, .. })) = &fetched {
                    self.largest_page = self.largest_page.max(rows.len());
                }
                let answer = (id, Message::Fetched(ticket, fetched));
                if self.reads == Reads::Held {
                    self.held.push_back(answer);
                    return None;
                }
                return Some(answer);
            }
            Output::Commit(batch) if self.commit_at_once => {
                let trouble = self.trouble.clone();
                let result = trouble.map_or_else(|| self.tables.apply(&batch), Err);
                return Some((id, Message::Committed(result)));
            }
            Output::Commit(batch) => self.commits.push_back(batch),
            Output::Reply(ticket, reply) => drop(self.replies.insert(ticket, reply)),
            Output::Acknowledge(ticket, answer) => {
                drop(self.acknowledged.insert(ticket, answer));
            }
            Output::Offer(offer) => self.offers.push(offer),
            Output::Dispatch(_, dispatch) => self.dispatches.push(*dispatch),
            Output::Unmatched(..) => self.unmatched += 1,
            Output::Mail(shard, mail) => {
                if matches!(mail, Mail::Deliver(_)) {
                    self.delivered += 1;
                    if self.mail_lost {
                        return None;
                    }
                    self.ensure(shard);
                }
                return Some((shard, mail.into()));
            }
            Output::Opened | Output::Closed => {}
            Output::Released => self.released += 1,
            Output::Halted(reason) => self.halted.push(reason),
            Output::Notice(notice) => self.notices.push(notice),
        }
        None
    }

    fn ensure(&mut self, shard: ShardId) {
        if !self.shards.contains_key(&shard) {
            self.send(shard, Message::Tick);
        }
    }

    fn fetch(&self, shard: ShardId, fetch: Fetch) -> Fetched {
        let tables = &self.tables;
        match fetch {
            Fetch::Shard => Fetched::Shard(tables.shard(shard)),
            Fetch::RunsOf(runs, limit) => Fetched::Runs(tables.runs_of(shard, &runs, limit)),
            Fetch::Load(run, limit) => Fetched::Load(tables.load(shard, run, limit)),
            Fetch::Log(run, after, limit) => Fetched::Log(tables.log(shard, run, after, limit)),
            Fetch::Tasks(after, limit) => {
                Fetched::Tasks(tables.tasks(shard, after.as_ref(), limit))
            }
            Fetch::Due(after, until, limit) => {
                Fetched::Due(tables.due(shard, after.as_ref(), until, limit))
            }
            Fetch::Outbox(after, limit) => Fetched::Outbox(tables.outbox(shard, after, limit)),
            Fetch::Inbox(run, number) => Fetched::Inbox(tables.inbox(shard, run, number)),
            Fetch::WaitsOf(run, limit) => {
                let filter = WaitFilter { run: Some((shard, run)), ..WaitFilter::default() };
                let rows = tables.waits(&filter, limit);
                Fetched::Waits(rows.into_iter().map(|(_, row)| row).collect())
            }
            Fetch::Registered(namespace) => {
                let name = Definitions::registry_name(&namespace);
                let rows = tables.registry(&name);
                Fetched::Registered(rows.into_iter().find(|row| row.name == name))
            }
            Fetch::Stranded(after, limit) => {
                Fetched::Stranded(tables.stranded(shard, after, limit))
            }
        }
    }

    /// Answers the oldest commit in flight: applies it, or fails it.
    pub(crate) fn commit(&mut self, answer: Result<(), CommitError>) {
        let batch = self.commits.pop_front().expect("a commit waits");
        let result = answer.and_then(|()| self.tables.apply(&batch));
        self.deliver(batch.shard, Message::Committed(result));
    }

    /// Answers the oldest held read, with the data at the time of the request.
    pub(crate) fn answer_read(&mut self) {
        let (shard, answer) = self.held.pop_front().expect("a read waits");
        self.deliver(shard, answer);
    }

    /// Advances the clock and ticks every shard.
    pub(crate) fn pass(&mut self, duration: Duration) {
        self.now = self.now.saturating_add(duration);
        let shards: Vec<_> = self.shards.keys().copied().collect();
        for shard in shards {
            self.deliver(shard, Message::Tick);
        }
    }

    /// Drops all memory; the store stays.
    pub(crate) fn crash(&mut self) {
        self.shards.clear();
        self.commits.clear();
        self.offers.clear();
        self.dispatches.clear();
    }

    /// Sends a client's call.
    pub(crate) fn call(&mut self, shard: ShardId, asked: impl Into<RunOperation>) -> Ticket {
        self.tickets += 1;
        let ticket = self.tickets;
        self.send(shard, Message::Ask(ticket, Box::new(asked.into())));
        ticket
    }

    /// Sends a client's call, and returns the immediate reply.
    pub(crate) fn ask(
        &mut self,
        shard: ShardId,
        asked: impl Into<RunOperation>,
    ) -> Result<AnyAnswer, CallError> {
        let ticket = self.call(shard, asked);
        self.replies.remove(&ticket).expect("the call is answered")
    }

    /// Sends a worker's report.
    pub(crate) fn say(&mut self, shard: ShardId, report: Report) -> Ticket {
        self.tickets += 1;
        let ticket = self.tickets;
        self.send(shard, Message::Report(ticket, Box::new(report)));
        ticket
    }

    /// Sends a worker's report, and returns the immediate reply.
    pub(crate) fn report(
        &mut self,
        shard: ShardId,
        report: Report,
    ) -> Result<ReportAnswer, CallError> {
        let ticket = self.say(shard, report);
        self.acknowledged.remove(&ticket).expect("the report is answered")
    }

    pub(crate) fn start(&mut self, id: &str) -> RunId {
        let call = self.start_call(id);
        match self.ask(shard_of(id), call) {
            Ok(AnyAnswer::Started(Started { run, started: true, .. })) => run,
            other => panic!("not started: {other:?}"),
        }
    }

    pub(crate) fn start_call(&self, id: &str) -> Start {
        Start {
            workflow: workflow(id),
            spec: RunSpec {
                workflow_type: "type".into(),
                queue: "queue".into(),
                ..RunSpec::default()
            },
            identity: "client".into(),
            key: None,
            conflict: ConflictPolicy::Reject,
            reuse: Default::default(),
            begin: Default::default(),
            signal: None,
            update: None,
        }
    }

    pub(crate) fn signal(&mut self, id: &str, key: &str) -> Result<AnyAnswer, CallError> {
        self.ask(
            shard_of(id),
            Signal { target: target(id), signal: signal(key), extension: Default::default() },
        )
    }

    /// Matches the last offer with a worker.
    pub(crate) fn take(&mut self, session: &str) -> Dispatch {
        let offer = self.offers.pop().expect("something is offered");
        self.offers.retain(|other| other.run != offer.run || other.work != offer.work);
        let shard = offer.shard;
        self.send(shard, Message::Matched(offer, worker(session)));
        self.dispatches.pop().expect("it is sent")
    }

    pub(crate) fn take_task(&mut self) -> TaskToken {
        match self.take("session") {
            Dispatch::Workflow { token, .. } => token,
            other => panic!("not a workflow task: {other:?}"),
        }
    }

    /// Completes a workflow task with commands.
    pub(crate) fn complete(&mut self, token: TaskToken, asks: Vec<Ask>) -> ReportAnswer {
        let shard = token.workflow.slot().shard();
        let commands = asks.into_iter().map(Command::from).collect();
        let completion = TaskCompletion { commands, ..TaskCompletion::default() };
        self.report(shard, Report::CompleteTask(token, Box::new(completion))).expect("it is taken")
    }

    pub(crate) fn describe(&mut self, id: &str) -> Description {
        match self.ask(shard_of(id), Describe { target: target(id) }) {
            Ok(AnyAnswer::Description(shown)) => *shown,
            other => panic!("not described: {other:?}"),
        }
    }

    /// The current run, rebuilt from its log in the store.
    pub(crate) fn run(&mut self, id: &str) -> Run {
        let current = self.describe(id).run;
        let rows = self.tables.log(shard_of(id), current, 0, LogLimit::rows(usize::MAX));
        let mut run: Option<Run> = None;
        for row in rows {
            let bytes = row.events.len();
            let row = codec::Row { events: row.events, notes: row.notes };
            let records = codec::decode_row(&row).expect("it decodes");
            match &mut run {
                Some(run) => run.fold_more(&records).expect("it folds"),
                None => run = Some(Run::fold(&records).expect("it folds")),
            }
            run.as_mut().expect("it has begun").logged(bytes);
        }
        run.expect("it has rows")
    }

    /// Names of the events in the store.
    pub(crate) fn history(&self, id: &str, run: RunId) -> Vec<&'static str> {
        self.facts(id, run).iter().map(Fact::name).collect()
    }

    pub(crate) fn facts(&self, id: &str, run: RunId) -> Vec<Fact> {
        let rows: Vec<LogRow> = self.tables.log(shard_of(id), run, 0, LogLimit::rows(usize::MAX));
        rows.into_iter()
            .flat_map(|row| codec::decode_events(row.events).expect("it decodes"))
            .map(|event| event.body.fact)
            .collect()
    }
}

pub(crate) fn workflow(id: &str) -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: id.into() }
}

pub(crate) fn target(id: &str) -> RunTarget {
    RunTarget { workflow: workflow(id), run: None }
}

pub(crate) fn shard_of(id: &str) -> ShardId {
    workflow(id).slot().shard()
}

/// Another workflow id on the shard of this one.
pub(crate) fn same_shard(id: &str) -> String {
    (0..)
        .map(|n| format!("other-{n}"))
        .find(|other| shard_of(other) == shard_of(id))
        .expect("there are more ids than shards")
}

pub(crate) fn worker(session: &str) -> Worker {
    Worker { session: session.into(), identity: "worker".into(), build: Some("build".into()) }
}

/// A signal with this key and the same text.
pub(crate) fn signal(key: &str) -> SignalReceived {
    SignalReceived {
        name: "signal".into(),
        key: Some(key.into()),
        input: vec![Payload::new(key.to_owned())],
        ..SignalReceived::default()
    }
}

pub(crate) fn timer(id: &str, fire_at: Timestamp) -> Ask {
    Ask::StartTimer(TimerSpec {
        timer: id.into(),
        fire_at,
        origin: Some(abide_core::event::Origin::CreateTimer),
        details: None,
        guards: Default::default(),
    })
}

pub(crate) fn activity(id: &str, delivery: Delivery) -> Ask {
    Ask::ScheduleActivity(ActivitySpec {
        activity: id.into(),
        activity_type: "activity".into(),
        queue: String::new(),
        input: Vec::new(),
        header: Default::default(),
        schedule_to_close: None,
        schedule_to_start: None,
        start_to_close: Some(Duration::from_secs(60)),
        heartbeat: None,
        retry: Some(Default::default()),
        delivery,
        retry_of: None,
        attempt: 0,
    })
}
