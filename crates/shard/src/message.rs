//! Everything that can happen to a shard, and everything that it can ask for. A driver carries
//! messages to and fro and decides nothing.

use std::collections::BTreeSet;

use abide_core::{
    dispatch::{Dispatch, QueueKey, Worker},
    effect::{Action, Answer, Effect},
    event::RunReference,
    ids::{BuildId, EventNumber, RunId, SessionId, ShardId, WorkflowKey},
    operation::{AnyAnswer, CallError, RunOperation, Ticket},
    report::{Report, ReportAnswer},
    time::Timestamp,
};
use abide_store::{
    Batch, CommitError, ReadError, WorkflowRuns,
    rows::{
        DueKey, DueRow, InboxRow, LogRow, OutboxRow, RunRow, ShardRow, SnapshotRow, Swept, TaskKey,
        TaskRow, WaitRow,
    },
};

/// One thing that happens to a shard.
#[derive(Clone, Debug)]
pub enum Message {
    /// Take the shard into memory.
    Open,
    /// A client or an operator asks for something.
    Ask(Ticket, Box<RunOperation>),
    /// A worker says something of its work.
    Report(Ticket, Box<Report>),
    /// Nobody waits for the answer any more.
    Forget(Ticket),
    /// The store answered a read.
    Fetched(Ticket, Result<Fetched, ReadError>),
    /// The store answered the commit.
    Committed(Result<(), CommitError>),
    /// A worker matched an offer.
    Matched(Offer, Worker),
    /// A queue has room again for offers that were left as rows.
    Refill(QueueKey),
    /// Workers of a new build serve a queue: blocked runs may go on.
    NewBuild(QueueKey, BuildId),
    /// A worker's stream ended. Its tasks go back; its attempts have a grace.
    SessionLost(SessionId),
    /// Another shard says something.
    Mail(Mail),
    /// What was sent to these shards may be lost: they, or the way to them, begin anew.
    SendAgain(BTreeSet<ShardId>),
    /// Another node is to have the shard: finish what is in flight and take nothing more.
    Close,
    /// The lease is over, and another node may have the shard already: tell all callers at once that
    /// what they asked for may have happened, and take nothing more.
    Lapse,
    /// Time passed.
    Tick,
}

/// One thing that a shard asks for.
#[derive(Clone, Debug)]
pub enum Output {
    /// Read from the store.
    Fetch(Ticket, Fetch),
    /// Commit to the store. One at a time per shard.
    Commit(Batch),
    /// Tell the client or the operator.
    Reply(Ticket, Result<AnyAnswer, CallError>),
    /// Tell the worker what became of its report.
    Acknowledge(Ticket, Result<ReportAnswer, CallError>),
    /// Offer work to a queue.
    Offer(Offer),
    /// Send work to a worker.
    Dispatch(Worker, Box<Dispatch>),
    /// A match came to nothing: the worker has its credit back.
    Unmatched(Offer, Worker),
    /// Tell another shard, wherever that is.
    Mail(ShardId, Mail),
    /// The shard is in memory: workers may present their attempts.
    Opened,
    /// The shard's memory was dropped: its offers are void. It is opened again by itself.
    Closed,
    /// The shard was closed and nothing of it is in flight: another node may have it.
    Released,
    /// The shard cannot be served here any more.
    Halted(Halt),
    /// An operator should know of it; nothing waits for it.
    Notice(Notice),
}

/// What an operator should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The store takes no writes, which passes: until the shard is opened again it only reads.
    ReadOnly(CommitError),
    /// The store refused the writes of this run twice: it is left alone until the shard is served by
    /// another process.
    SetAside(RunId, String),
    /// What is stored of this run cannot be read.
    Unreadable(RunId, String),
    /// The store refused the first writes of this child twice: its parent is told that it did not start.
    Unstarted(RunId, String),
    /// The source of this effect cannot have asked for it: it is told so.
    Senseless(Box<EffectKey>),
}

/// Why a shard cannot be served here any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// Another owner has claimed it.
    #[error("{0}")]
    Taken(String),
    /// The store takes no further write.
    #[error("{0}")]
    Stopped(String),
}

/// A read that a shard needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Fetch {
    /// Who owns the shard.
    Shard,
    /// The retained runs of a workflow.
    RunsOf(WorkflowRuns, usize),
    /// A snapshot.
    Snapshot(RunId),
    /// Log rows after a sequence.
    Log(RunId, u64, usize),
    /// Tasks after a key.
    Tasks(Option<TaskKey>, usize),
    /// Due entries after a key and not later than a time.
    Due(Option<DueKey>, Timestamp, usize),
    /// Undelivered effects after a key.
    Outbox(Option<(RunId, u64)>, usize),
    /// The answer of an effect.
    Inbox(RunId, u64),
    /// Runs that nothing would resume, among so many open ones after a run.
    Stranded(Option<RunId>, usize),
    /// The waits of a run.
    WaitsOf(RunId, usize),
}

/// What the store answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Fetched {
    /// Who owns the shard.
    Shard(ShardRow),
    /// Rows of runs.
    Runs(Vec<RunRow>),
    /// A snapshot.
    Snapshot(Option<SnapshotRow>),
    /// Log rows.
    Log(Vec<LogRow>),
    /// Tasks.
    Tasks(Vec<TaskRow>),
    /// Due entries.
    Due(Vec<DueRow>),
    /// Undelivered effects.
    Outbox(Vec<OutboxRow>),
    /// The answer of an effect.
    Inbox(Option<InboxRow>),
    /// Runs that nothing would resume.
    Stranded(Swept),
    /// Waits.
    Waits(Vec<WaitRow>),
}

/// Work that a shard has for a worker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offer {
    /// Where.
    pub queue: QueueKey,
    /// Whose.
    pub shard: ShardId,
    /// The workflow.
    pub workflow: WorkflowKey,
    /// The run.
    pub run: RunId,
    /// What.
    pub work: Work,
    /// The session that has the run in memory.
    pub prefer: Option<SessionId>,
    /// Builds that must not get it.
    pub except: BTreeSet<BuildId>,
}

/// What kind of work an offer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// The run's workflow task.
    Workflow,
    /// An activity, by the event that scheduled it.
    Activity(EventNumber),
    /// A query, by its caller's ticket.
    Query(Ticket),
}

impl Work {
    /// The run and the work that a dispatch is about.
    pub fn of(dispatch: &Dispatch) -> (RunId, Self) {
        match dispatch {
            Dispatch::Workflow { token, .. } => (token.run, Self::Workflow),
            Dispatch::Activity { token, .. } => (token.run, Self::Activity(token.scheduled)),
            Dispatch::Query { token, .. } => (token.run, Self::Query(token.ticket)),
        }
    }
}

/// Names an effect of one run on another workflow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EffectKey {
    /// The workflow of the source.
    pub workflow: WorkflowKey,
    /// The source run.
    pub run: RunId,
    /// Its number in the source's outbox.
    pub number: u64,
}

/// What shards tell each other. It may be lost, and is then said again.
#[derive(Clone, Debug)]
pub enum Mail {
    /// An effect for a workflow of yours.
    Deliver(Box<Envelope>),
    /// What became of an effect of yours.
    Answered(EffectKey, Answer),
    /// The answer to your effect on me is recorded: it need not be kept.
    Confirmed(EffectKey),
}

impl Mail {
    /// The effect that it is about.
    pub fn key(&self) -> &EffectKey {
        match self {
            Self::Deliver(envelope) => &envelope.key,
            Self::Answered(key, _) | Self::Confirmed(key) => key,
        }
    }
}

impl From<Mail> for Message {
    fn from(mail: Mail) -> Self {
        Self::Mail(mail)
    }
}

/// An effect on its way to its target.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// Names it.
    pub key: EffectKey,
    /// What is done to whom.
    pub effect: Effect,
}

impl Envelope {
    /// Whether its source can have asked for it: a child, and the id of its run, are the source's own.
    pub fn makes_sense(&self) -> bool {
        let Action::StartChild(start) = &self.effect.action else { return true };
        let initiated = start.parent.initiated;
        self.effect.target.workflow == start.child.workflow
            && start.parent.run == self.key.source()
            && start.run.is_child_of(self.key.run, initiated)
    }
}

impl EffectKey {
    /// The source run.
    pub fn source(&self) -> RunReference {
        RunReference { workflow: self.workflow.clone(), run: self.run }
    }

    /// The shard of the source.
    pub fn shard(&self) -> ShardId {
        self.workflow.slot().shard()
    }
}
