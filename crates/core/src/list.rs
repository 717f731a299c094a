//! Lists of runs and of waits: what a row shows, which rows pass a filter, where the next page begins.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;

use crate::{
    ids::{NamespaceId, RunId, ShardId, TimerId, WorkflowId, WorkflowKey},
    search::{Order, Query},
    time::Timestamp,
};

/// One run, for lists, as the current pointer and as the start key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    pub run: RunId,
    pub namespace: NamespaceId,
    pub workflow: WorkflowId,
    /// Counts the runs of the workflow id; the highest is the current one.
    pub ordinal: u64,
    pub workflow_type: String,
    /// How the run stands.
    pub status: RunStatus,
    /// Idempotency key of the start that made the run.
    pub start_key: Option<String>,
    /// When the run started.
    pub started_at: Timestamp,
    pub closed_at: Option<Timestamp>,
    /// Memo, search attributes and the like, opaque to stores.
    pub details: Bytes,
    /// The queue whose workers run its code.
    pub queue: String,
    /// The run that started it as a child.
    pub parent: Option<RunParent>,
}

/// The parent of a run, which may be in another namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunParent {
    pub workflow: WorkflowId,
    pub run: RunId,
}

/// An entry of the index of search attributes: one value of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeRow {
    pub run: RunId,
    pub namespace: NamespaceId,
    /// The attribute's name.
    pub name: String,
    /// Type and value, as [`Value::to_entry`](crate::search::Value::to_entry) gives them.
    pub value: Bytes,
    /// When the run started, so that runs of one value are found in the order of lists.
    pub started_at: Timestamp,
}

impl RunRow {
    /// Where the row stands in lists: what a page that follows it begins after.
    pub const fn position(&self) -> (Timestamp, RunId) {
        (self.started_at, self.run)
    }
}

/// How a run stands, as lists show and filter it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunStatus {
    /// Open.
    Running,
    /// Open; nothing new is scheduled until it is unpaused.
    Paused,
    /// Open; its code does not fit its history.
    ReplayBlocked,
    /// Closed with a result.
    Completed,
    /// Closed with a failure.
    Failed,
    /// Closed by its run or execution timeout.
    TimedOut,
    /// Closed by its own answer to a cancel request.
    Cancelled,
    /// Closed from outside.
    Terminated,
    /// Closed; the next run of the workflow goes on.
    ContinuedAsNew,
}

impl RunStatus {
    /// All statuses, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Running,
        Self::Paused,
        Self::ReplayBlocked,
        Self::Completed,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::Terminated,
        Self::ContinuedAsNew,
    ];

    /// The number that stands in a column. Never reused.
    #[doc(hidden)]
    pub const fn number(self) -> u8 {
        match self {
            Self::Running => 1,
            Self::Paused => 2,
            Self::ReplayBlocked => 3,
            Self::Completed => 4,
            Self::Failed => 5,
            Self::TimedOut => 6,
            Self::Cancelled => 7,
            Self::Terminated => 8,
            Self::ContinuedAsNew => 9,
        }
    }

    /// The status of a number, if it is known.
    #[doc(hidden)]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.number() == number)
    }

    /// The run may still change.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Paused | Self::ReplayBlocked)
    }
}

/// One thing that a run waits for, as lists and inboxes show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitRow {
    pub run: RunId,
    /// The wait within the run; opaque to stores.
    pub wait: Bytes,
    pub namespace: NamespaceId,
    pub workflow: WorkflowId,
    pub workflow_type: String,
    /// What is waited for.
    pub kind: WaitKind,
    /// Name of the signal, key of the condition or approval, id of the timer.
    pub name: String,
    pub since: Timestamp,
    /// Until when; [`Timestamp::NEVER`] without a deadline.
    pub until: Timestamp,
    /// The timer whose due time is the end of the wait and can be moved; none without a deadline.
    pub timer: Option<TimerId>,
    /// Subject, who may act, data: opaque to stores.
    pub details: Bytes,
}

impl WaitRow {
    /// Bytes of everything in it that has no fixed size.
    pub fn size(&self) -> usize {
        let timer = self.timer.as_ref().map_or(0, |timer| timer.as_str().len());
        let place = self.namespace.as_str().len() + self.workflow.as_str().len();
        let names = self.workflow_type.len() + self.name.len() + timer;
        self.wait.len() + place + names + self.details.len()
    }

    /// Where the row stands in lists: what a page that follows it begins after.
    pub fn position(&self) -> WaitPosition {
        let (namespace, workflow) = (self.namespace.clone(), self.workflow.clone());
        let shard = WorkflowKey { namespace, workflow }.slot().shard();
        WaitPosition::of(shard, self)
    }
}

/// What a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// Time to pass.
    Timer,
    Signal,
    /// A condition on the run's own state.
    Condition,
    /// The next attempt of an activity.
    ActivityRetry,
    /// The next attempt of a child.
    ChildRetry,
    /// A person's decision: a condition whose details say how it is decided.
    Approval,
    /// The next time of a schedule.
    Schedule,
}

impl WaitKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Timer,
        Self::Signal,
        Self::Condition,
        Self::ActivityRetry,
        Self::ChildRetry,
        Self::Approval,
        Self::Schedule,
    ];

    /// The number that stands in a column. Never reused.
    #[doc(hidden)]
    pub const fn number(self) -> u8 {
        match self {
            Self::Timer => 1,
            Self::Signal => 2,
            Self::Condition => 3,
            Self::ActivityRetry => 4,
            Self::ChildRetry => 5,
            Self::Approval => 6,
            Self::Schedule => 7,
        }
    }

    /// The kind of a number, if it is known.
    #[doc(hidden)]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// What would end a wait of this kind that lasts until then.
    pub fn ended_by(self, until: Timestamp) -> Vec<WaitEnd> {
        let awaited = match self {
            Self::Timer | Self::ActivityRetry | Self::ChildRetry => return vec![WaitEnd::Time],
            // A paused one waits for a person.
            Self::Schedule if until.is_never() => return Vec::new(),
            Self::Schedule => return vec![WaitEnd::Time],
            Self::Signal => WaitEnd::Signal,
            Self::Condition => WaitEnd::Condition,
            Self::Approval => WaitEnd::Decision,
        };
        let deadline = (!until.is_never()).then_some(WaitEnd::Deadline);
        [Some(awaited), deadline].into_iter().flatten().collect()
    }
}

/// What can end a wait. Cancelling it can always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitEnd {
    /// Its time comes, which is what is waited for.
    Time,
    Signal,
    /// The condition becomes true.
    Condition,
    /// A person decides.
    Decision,
    /// Its time comes before anything else.
    Deadline,
}

/// Which runs to list. Empty lists everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    pub namespace: Option<NamespaceId>,
    /// Only these namespaces, which an engine knows; none means all.
    pub known: BTreeSet<NamespaceId>,
    /// Only this workflow id.
    pub workflow: Option<WorkflowId>,
    pub workflow_type: Option<String>,
    /// Only these statuses; none means all.
    pub statuses: Vec<RunStatus>,
    /// Only runs started at or after this.
    pub started_from: Option<Timestamp>,
    /// Only runs started before this.
    pub started_before: Option<Timestamp>,
    /// Where the page before ended, in the order of the list.
    pub after: Option<(Timestamp, RunId)>,
    /// Only runs that pass this query, as text; empty if there is none. An engine reads it.
    pub query: String,
    /// The query, as the engine has read it. Stores know only this form of it.
    pub search: Option<Arc<Query>>,
}

impl RunFilter {
    /// The order of the list: the newest first, unless a query says otherwise.
    pub fn order(&self) -> Order {
        self.search.as_ref().map_or_else(|| Query::order_of(&self.query), |query| query.order)
    }

    /// The part of the filter by which rows are found: the span of start times, and the workflow if
    /// its namespace is given too. The rest chooses among them.
    #[must_use]
    pub fn span(&self) -> Self {
        let workflow = self.namespace.clone().zip(self.workflow.clone());
        let (namespace, workflow) = workflow.unzip();
        let Self { started_from, started_before, after, .. } = *self;
        let search = self.search.clone();
        Self { namespace, workflow, started_from, started_before, after, search, ..Self::default() }
    }

    /// Whether the row passes all but the query; how a backend finds the rows is its own affair.
    pub fn matches(&self, row: &RunRow) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| row.namespace == *namespace)
            && (self.known.is_empty() || self.known.contains(&row.namespace))
            && self.workflow.as_ref().is_none_or(|workflow| row.workflow == *workflow)
            && self.workflow_type.as_ref().is_none_or(|name| row.workflow_type == *name)
            && (self.statuses.is_empty() || self.statuses.contains(&row.status))
            && self.started_from.is_none_or(|from| row.started_at >= from)
            && self.started_before.is_none_or(|before| row.started_at < before)
            && self.after.is_none_or(|after| self.order().behind(self.order().position(row), after))
    }
}

/// Which waits to list. Empty lists everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitFilter {
    pub namespace: Option<NamespaceId>,
    /// Only these namespaces, which an engine knows; none means all.
    pub known: BTreeSet<NamespaceId>,
    /// Only waits of this run.
    pub run: Option<(ShardId, RunId)>,
    /// Only waits of this workflow id.
    pub workflow: Option<WorkflowId>,
    /// Only waits of workflows of this type.
    pub workflow_type: Option<String>,
    pub kind: Option<WaitKind>,
    /// Only this name; needs a kind.
    pub name: Option<String>,
    /// Only waits that end at or before this.
    pub until: Option<Timestamp>,
    /// Only waits that are older: begun before this.
    pub since_before: Option<Timestamp>,
    /// Where the page before ended: order is by `until`, run, shard and wait.
    pub after: Option<WaitPosition>,
}

impl WaitFilter {
    /// Whether the row at this position passes.
    pub fn matches(&self, position: &WaitPosition, row: &WaitRow) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| row.namespace == *namespace)
            && (self.known.is_empty() || self.known.contains(&row.namespace))
            && self.run.is_none_or(|run| run == (position.shard, position.run))
            && self.workflow.as_ref().is_none_or(|workflow| row.workflow == *workflow)
            && self.workflow_type.as_ref().is_none_or(|name| row.workflow_type == *name)
            && self.kind.is_none_or(|kind| row.kind == kind)
            && self.name.as_ref().is_none_or(|name| row.name == *name)
            && self.until.is_none_or(|until| row.until <= until)
            && self.since_before.is_none_or(|before| row.since < before)
            && self.after.as_ref().is_none_or(|after| position > after)
    }
}

/// A place in a list of waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitPosition {
    /// Until when the wait lasts.
    pub until: Timestamp,
    /// Its run. Stands before the shard, because run ids grow with time and shards do not: new
    /// waits without a deadline then go to one end of an index.
    pub run: RunId,
    pub shard: ShardId,
    /// The wait within the run.
    pub wait: Bytes,
}

impl WaitPosition {
    /// Where the row stands in lists.
    pub fn of(shard: ShardId, row: &WaitRow) -> Self {
        Self { until: row.until, run: row.run, shard, wait: row.wait.clone() }
    }
}
