//! The inputs ([`Message`]) and outputs ([`Output`]) of a shard. A driver carries them between
//! shards, stores and workers and decides nothing.

use std::{collections::BTreeSet, sync::Arc};

use abide_core::{
    dispatch::{Dispatch, QueueKey, Worker},
    effect::{Action, Effect, EffectOutcome},
    event::RunReference,
    ids::{BuildId, EventNumber, NamespaceId, RunId, SessionId, ShardId, WorkflowKey},
    operation::{AnyAnswer, CallError, RunOperation, Ticket},
    report::{Report, ReportAnswer},
    time::Timestamp,
};
use abide_store::{
    Batch, CommitError, ReadError, WorkflowRuns,
    rows::{
        DueKey, DueRow, InboxRow, Loaded, LogLimit, LogRow, OutboxRow, RegistryRow, RunKey,
        ShardRow, Swept, TaskKey, TaskRow, WaitRow,
    },
};

/// An input of a shard.
#[derive(Clone, Debug)]
pub enum Message {
    /// Take the shard into memory.
    Open,
    /// An operation of a client or an operator.
    Ask(Ticket, Box<RunOperation>),
    /// A worker reports on its work.
    Report(Ticket, Box<Report>),
    /// The caller has disconnected: no answer is needed.
    Forget(Ticket),
    /// The store's answer to [`Output::Fetch`].
    Fetched(Ticket, Result<Fetched, ReadError>),
    /// The store's answer to [`Output::Commit`].
    Committed(Result<(), CommitError>),
    /// A queue matched an offer of this shard with a worker.
    Matched(Offer, Worker),
    /// A queue that turned offers away has room again: the shard offers its task rows again.
    Refill(Arc<QueueKey>),
    /// Workers of a new build serve a queue: blocked runs are offered again.
    NewBuild(Arc<QueueKey>, BuildId),
    /// A worker's stream ended. Its workflow tasks and queries are requeued; its activity attempts
    /// are lost after the session grace, unless the worker presents them.
    SessionLost(SessionId),
    /// A message from another shard.
    Mail(Mail),
    /// Mail to these shards may be lost, because they were reopened or the link to them was
    /// replaced: the shard sends its effects on them again.
    SendAgain(BTreeSet<ShardId>),
    /// The shard moves to another node: finish what is in flight and accept nothing more.
    Close,
    /// The lease has expired, and another node may already own the shard: fail all calls at once
    /// with an unknown outcome, and accept nothing more.
    Lapse,
    /// The time of [`Shard::wake_at`](crate::shard::Shard::wake_at) has come.
    Tick,
}

/// An output of a shard.
#[derive(Clone, Debug)]
pub enum Output {
    /// Read from the store.
    Fetch(Ticket, Fetch),
    /// Commit to the store. One at a time per shard.
    Commit(Batch),
    /// Answer a client or an operator.
    Reply(Ticket, Result<AnyAnswer, CallError>),
    /// Acknowledge a worker's report.
    Acknowledge(Ticket, Result<ReportAnswer, CallError>),
    /// Offer work to a queue.
    Offer(Offer),
    /// Send work to a worker.
    Dispatch(Worker, Box<Dispatch>),
    /// The match failed: the worker gets its credit back.
    Unmatched(Offer, Worker),
    /// Send mail to another shard, on whichever node it is.
    Mail(ShardId, Mail),
    /// The shard is in memory: workers may present their attempts.
    Opened,
    /// The shard dropped its memory: its offers are void. It reopens by itself.
    Closed,
    /// The shard is closed and nothing is in flight: another node may own it.
    Released,
    /// This process can no longer serve the shard.
    Halted(Halt),
    /// A condition to report to operators; no answer is expected.
    Notice(Notice),
}

/// A condition that operators should see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The store temporarily accepts no writes: the shard is read-only until it can be reopened.
    ReadOnly(CommitError),
    /// The store refused the writes of this run twice: the run is set aside until it is repaired or
    /// another process serves the shard.
    SetAside(RunId, String),
    /// A run that was set aside has been repaired: it is served again.
    Repaired(RunId),
    /// Stored data of this run cannot be decoded.
    Unreadable(RunId, String),
    /// The search attributes of a namespace cannot be decoded; says which and why.
    UnreadableAttributes(String),
    /// The store refused the first writes of this child twice: its start is answered with a
    /// failure.
    Unstarted(RunId, String),
    /// The source run cannot have caused this effect, so the effect is refused.
    Senseless(Box<EffectKey>),
}

/// Why this process can no longer serve a shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// Another owner has claimed it.
    #[error("{0}")]
    Taken(String),
    /// The store has stopped for good.
    #[error("{0}")]
    Stopped(String),
}

/// A read from the store.
#[derive(Clone, Debug, PartialEq)]
pub enum Fetch {
    /// The shard's row: its owner and epoch.
    Shard,
    /// The retained runs of a workflow.
    RunsOf(WorkflowRuns, usize),
    /// The snapshot of a run and the first page of its log after it.
    Load(RunId, LogLimit),
    /// Log rows after a sequence number, up to a limit.
    Log(RunId, u64, LogLimit),
    /// Task rows after a key, at most this many.
    Tasks(Option<TaskKey>, usize),
    /// Due entries after a key and not later than a time, at most this many.
    Due(Option<DueKey>, Timestamp, usize),
    /// Outbox rows (effects without a recorded answer) after a key, at most this many.
    Outbox(Option<(RunId, u64)>, usize),
    /// The recorded answer to an effect, by source run and number.
    Inbox(RunId, u64),
    /// Runs that no row would ever resume, among this many open runs after a run.
    Stranded(Option<RunId>, usize),
    /// The waits of a run.
    WaitsOf(RunId, usize),
    /// The search attributes of a namespace.
    Registered(NamespaceId),
}

/// The store's answer to a [`Fetch`], of the same name.
#[derive(Clone, Debug, PartialEq)]
pub enum Fetched {
    /// The shard's row: its owner and epoch.
    Shard(ShardRow),
    Runs(Vec<RunKey>),
    /// The snapshot of a run and the first page of its log after it.
    Load(Loaded),
    Log(Vec<LogRow>),
    Tasks(Vec<TaskRow>),
    Due(Vec<DueRow>),
    Outbox(Vec<OutboxRow>),
    /// The recorded answer to an effect, by source run and number.
    Inbox(Option<InboxRow>),
    /// Runs that no row would ever resume, and where the search ended.
    Stranded(Swept),
    Waits(Vec<WaitRow>),
    /// The registry's row with the search attributes of a namespace, if it has any.
    Registered(Option<RegistryRow>),
}

/// Work that a shard has for a worker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offer {
    pub queue: QueueKey,
    /// The shard that offers the work and is notified of a match.
    pub shard: ShardId,
    pub workflow: WorkflowKey,
    pub run: RunId,
    pub work: Work,
    /// The session that has the run in memory; it gets the work if it has credit.
    pub prefer: Option<SessionId>,
    /// Builds that must not get it.
    pub except: BTreeSet<BuildId>,
}

/// A piece of work, unique within its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// The run's workflow task.
    Workflow,
    /// An activity, by the event that scheduled it.
    Activity(EventNumber),
    /// A query, by the ticket of its call.
    Query(Ticket),
}

impl Work {
    /// The run of a dispatch, and the work in it.
    pub fn of(dispatch: &Dispatch) -> (RunId, Self) {
        match dispatch {
            Dispatch::Workflow { token, .. } => (token.run, Self::Workflow),
            Dispatch::Activity { token, .. } => (token.run, Self::Activity(token.scheduled)),
            Dispatch::Query { token, .. } => (token.run, Self::Query(token.ticket)),
        }
    }
}

/// Identifies an effect of one run on another workflow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EffectKey {
    /// Workflow of the source run.
    pub workflow: WorkflowKey,
    pub run: RunId,
    /// Number of the effect in the source's outbox.
    pub number: u64,
}

/// A message between shards. Delivery is not guaranteed: the sender retries.
#[derive(Clone, Debug)]
pub enum Mail {
    /// An effect on a workflow of the receiver.
    Deliver(Box<Envelope>),
    /// The answer to an effect of the receiver.
    Answered(EffectKey, EffectOutcome),
    /// The source has recorded the answer: the receiver may delete its inbox row.
    Confirmed(EffectKey),
    /// The source run cannot have caused the effect as it arrived, and nothing was done. The source
    /// decides: an effect that was garbled on its way is resent, one that is wrong itself fails.
    Senseless(EffectKey),
}

impl Mail {
    pub fn key(&self) -> &EffectKey {
        match self {
            Self::Deliver(envelope) => &envelope.key,
            Self::Answered(key, _) | Self::Confirmed(key) | Self::Senseless(key) => key,
        }
    }
}

impl From<Mail> for Message {
    fn from(mail: Mail) -> Self {
        Self::Mail(mail)
    }
}

/// An effect in flight to its target.
#[derive(Clone, Debug)]
pub struct Envelope {
    pub key: EffectKey,
    /// The target and the action.
    pub effect: Effect,
}

impl Envelope {
    /// Whether the source run can have caused this effect: a child must name the source as its
    /// parent, and its run id must be derived from the source run.
    pub fn makes_sense(&self) -> bool {
        if let Action::AdoptChild(adopt) = &self.effect.action {
            return adopt.parent.run == self.key.source();
        }
        let Action::StartChild(start) = &self.effect.action else { return true };
        let initiated = start.parent.initiated;
        self.effect.target.workflow == start.child.workflow
            && start.parent.run == self.key.source()
            && start.run.is_child_of(self.key.run, initiated)
    }
}

impl EffectKey {
    pub fn source(&self) -> RunReference {
        RunReference { workflow: self.workflow.clone(), run: self.run }
    }

    /// The shard of the source.
    pub fn shard(&self) -> ShardId {
        self.workflow.slot().shard()
    }
}
