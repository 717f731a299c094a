//! Which node serves which shards. Each node has one lease: a registry row of its own that it
//! renews by compare-and-set and in which it lists the shards it holds. Nodes know each other only
//! through these rows, so all of them compute the same fair share.
//!
//! | standing | input | becomes |
//! |---|---|---|
//! | outside | a read; its row is absent, gone, its own or expired | outside, writes its row |
//! | outside | a read; a node is alive with which it cannot communicate | outside, until that node is gone |
//! | outside | its row was written | member |
//! | member | its row was renewed | member, for another lease |
//! | member | another process wrote its row | outside; all shards close |
//! | member | a whole term without a renewal | member; all shards close |
//! | member | `Leave` | member until others have taken its shards, but for a limited time, then left |
//! | member | `Leave`, and a whole term without a renewal | left when all shards are released |
//! | alone | `Leave` | alone until all shards are released, then left |
//!
//! Why no shard is served by two nodes whose leases are both valid by their own clocks:
//! - A node lists a shard, *then* reads all rows, and opens the shard only if no other node lists
//!   it. Of two nodes that list the same shard, at least one sees the other's row.
//! - A row stops listing a shard only when its node has released it, or when another node expelled
//!   that node: by compare-and-set on a row that it saw unchanged for a whole lease. If leases
//!   differ, the longer one counts: each row states the length of its node's lease.
//! - A node trusts its lease only for a term that begins *before* it requests the renewal and is
//!   shorter than the lease by a margin, which allows for clocks that run at different speeds. A
//!   node that was paused finds that its term is over, and its next renewal is refused.
//!
//! Writes do not depend on any of this: the shard's epoch fences them. The lease protects answers
//! that need no commit, and moves shards without contention.
//!
//! The clock comes in as `monotonic`: time since any fixed moment, never wall time. It must count
//! the time that the machine is suspended (`CLOCK_BOOTTIME` on Linux); if it stops while other
//! clocks run, answers without a commit may be stale.

mod holdings;
mod options;
mod round;
mod row;
mod share;
mod survey;
mod watch;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use abide_core::ids::ShardId;
use abide_store::rows::RegistryRow;

use self::{
    holdings::{Holdings, Release},
    options::Term,
    round::{Dead, LeaseRequest},
    watch::Watches,
};

pub use self::{
    options::LeaseOptions,
    row::{NodeRow, NodeRowError, NodeState},
};

/// Prefix of the names of nodes' rows in the registry. A node that left keeps its row for its
/// return, so names should be few: those of hosts, not of processes.
pub const NODE_PREFIX: &str = "node/";

/// The lease of one node.
#[derive(Debug)]
pub struct Lease {
    options: LeaseOptions,
    standing: Standing,
    leaving: bool,
    /// Until when a leaving node waits for others to take over.
    stays_until: Duration,
    /// Others serve what a leaving node has released, or it no longer waits for them.
    taken_over: bool,
    /// The node has had its whole share at some time.
    settled: bool,
    /// The stored row is out of date and must be written again.
    outdated: bool,
    /// The rows have changed since the last read began.
    curious: bool,
    /// State and shards of the row as last written; a change is announced to the other nodes.
    told: Option<(NodeState, BTreeSet<ShardId>)>,
    /// Last known version of the node's row.
    version: u64,
    /// Number of attempts to write the row.
    counter: u64,
    /// When the last attempt was made.
    asked_at: Duration,
    /// Start of the read in flight, and of the read whose rows the node has.
    reading_since: Duration,
    read_at: Duration,
    /// The outcome of the last write of the row is unknown.
    unsure: bool,
    term: Option<Term>,
    /// The lease was valid after the last message.
    good: bool,
    holdings: Holdings,
    watches: Watches,
    /// Dead nodes whose rows must be marked as gone.
    dead: Vec<Dead>,
    addresses: BTreeMap<ShardId, String>,
    nodes: BTreeSet<String>,
    /// Rows of other nodes whose lease length differs from this node's.
    other_leases: BTreeMap<String, Duration>,
    /// Another process seems to be alive under this node's name.
    name_taken: bool,
    /// The row of a live node with which this one cannot share the shards.
    stranger: Option<String>,
    request: Option<LeaseRequest>,
    round_at: Duration,
    seen_at: Duration,
    outputs: VecDeque<LeaseOutput>,
}

/// An input of a node's lease. Every request is answered exactly once, also when it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseMessage {
    /// The time of [`Lease::wake_at`] has come.
    Tick,
    /// The answer to [`LeaseOutput::ReadRegistry`].
    Registry(Vec<RegistryRow>),
    /// The rows could not be read.
    ReadFailed,
    /// Whether the row was written; if not, another version is stored.
    Written(bool),
    /// The write failed: the row may or may not be written.
    WriteFailed,
    /// This node no longer serves the shard: it was closed and its commits are done, or it was
    /// lost.
    ShardReleased(ShardId),
    /// Another node has changed the rows.
    Look,
    /// Hand over everything and leave.
    Leave,
}

/// An output of a node's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseOutput {
    /// Read all rows with [`NODE_PREFIX`].
    ReadRegistry,
    /// Write a row, by compare-and-set.
    PutRegistry(RegistryRow),
    /// Claim the shard's epoch and serve it.
    Open(ShardId),
    /// Stop serving the shard; send [`LeaseMessage::ShardReleased`] when its commits are done.
    Close(ShardId),
    /// The lease has just expired: no caller may be answered, and workers should reconnect
    /// elsewhere.
    Lost,
    /// Notify all other nodes to read the rows; a change may move shards.
    Tell,
    /// The node has left: its shards are released.
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// No other process can reach the store: this node owns all shards and needs no row.
    Alone,
    Outside,
    Member,
    Left,
}

impl Lease {
    /// A node of a cluster. It has no outputs until the first [`Self::handle`].
    pub fn new(options: LeaseOptions) -> Self {
        Self::with_standing(options, Standing::Outside)
    }

    /// The only node of a store that no other process can open. It needs no row and no renewal.
    pub fn alone(options: LeaseOptions) -> Self {
        Self::with_standing(options, Standing::Alone)
    }

    fn with_standing(options: LeaseOptions, standing: Standing) -> Self {
        Self {
            options,
            standing,
            leaving: false,
            stays_until: Duration::ZERO,
            taken_over: false,
            settled: false,
            outdated: false,
            curious: false,
            told: None,
            version: 0,
            counter: 0,
            asked_at: Duration::ZERO,
            reading_since: Duration::ZERO,
            read_at: Duration::ZERO,
            unsure: false,
            term: None,
            good: false,
            holdings: Holdings::default(),
            watches: Watches::default(),
            dead: Vec::new(),
            addresses: BTreeMap::new(),
            nodes: BTreeSet::new(),
            other_leases: BTreeMap::new(),
            name_taken: false,
            stranger: None,
            request: None,
            round_at: Duration::ZERO,
            seen_at: Duration::ZERO,
            outputs: VecDeque::new(),
        }
    }

    /// Handles one message. Drain [`Self::poll`] afterwards.
    pub fn handle(&mut self, monotonic: Duration, message: LeaseMessage) {
        if monotonic < self.seen_at {
            self.round_at = monotonic;
        }
        self.seen_at = monotonic;
        if !self.may_answer(monotonic) {
            self.close_all();
        }
        match message {
            LeaseMessage::Tick => {}
            LeaseMessage::Registry(rows) => self.registry_read(rows),
            LeaseMessage::ReadFailed => self.read_failed(),
            LeaseMessage::Written(true) => self.written(),
            LeaseMessage::Written(false) => self.write_refused(),
            LeaseMessage::WriteFailed => self.write_failed(),
            LeaseMessage::ShardReleased(shard) => self.released(shard),
            LeaseMessage::Look => self.look(),
            LeaseMessage::Leave => self.leave(),
        }
        self.proceed();
        self.notice_loss(monotonic);
    }

    /// Reports the moment at which the lease expires. A node that is alone cannot lose its shards.
    fn notice_loss(&mut self, monotonic: Duration) {
        let good = self.standing != Standing::Alone && self.may_answer(monotonic);
        if std::mem::replace(&mut self.good, good) && !good {
            self.outputs.push_back(LeaseOutput::Lost);
        }
    }

    /// Takes the next output, in order.
    pub fn poll(&mut self) -> Option<LeaseOutput> {
        self.outputs.pop_front()
    }

    /// When to send [`LeaseMessage::Tick`], unless another message comes first.
    pub fn wake_at(&self) -> Option<Duration> {
        let good = self.term.filter(|term| term.covers(self.seen_at));
        let lapse_at = good.filter(|_| self.holdings.any_served()).map(|term| term.until);
        self.next_round_at().into_iter().chain(lapse_at).min()
    }

    /// Whether the lease is valid at this moment, so that an open shard may answer without a
    /// commit. A closing shard never may.
    pub fn may_answer(&self, monotonic: Duration) -> bool {
        match self.standing {
            Standing::Alone => true,
            Standing::Outside | Standing::Left => false,
            Standing::Member => self.term.is_some_and(|term| term.covers(monotonic)),
        }
    }

    /// Whether the shard is open on this node.
    pub fn serves(&self, shard: ShardId) -> bool {
        self.holdings.open(shard)
    }

    /// Address of the owner of each shard when the rows were last read.
    pub fn addresses(&self) -> &BTreeMap<ShardId, String> {
        &self.addresses
    }

    /// When the last completed read began: its rows show everything that happened before.
    pub const fn read_at(&self) -> Duration {
        self.read_at
    }

    /// Addresses of all nodes that were not gone when the rows were last read, this one included.
    pub fn nodes(&self) -> &BTreeSet<String> {
        &self.nodes
    }

    /// Names of the rows whose nodes have missed renewals. Rows of nodes that are gone are
    /// included, because they are no longer renewed.
    pub fn silent(&self) -> impl Iterator<Item = &str> {
        self.watches.silent()
    }

    /// Whether the node waits outside because another process seems to be alive under its name: its
    /// own previous process until that lease expires, or a second process with the same name.
    pub const fn name_taken(&self) -> bool {
        self.name_taken
    }

    /// The row of a live node that keeps this one outside: the two cannot communicate, because one
    /// of them has no address.
    pub fn stranger(&self) -> Option<&str> {
        self.stranger.as_deref()
    }

    /// Rows of other nodes whose lease length differs from this node's, with that length.
    pub fn other_leases(&self) -> &BTreeMap<String, Duration> {
        &self.other_leases
    }

    /// Until when [`Self::may_answer`] holds if nothing else happens; none if there is no lease,
    /// and [`Duration::MAX`] for a node that is alone.
    pub fn good_until(&self) -> Option<Duration> {
        match self.standing {
            Standing::Alone => Some(Duration::MAX),
            Standing::Outside | Standing::Left => None,
            Standing::Member => self.term.map(|term| term.until),
        }
    }

    /// Whether the node has had its whole share of the shards at some time since it was started.
    pub const fn settled(&self) -> bool {
        matches!(self.standing, Standing::Alone) || self.settled
    }

    fn close_all(&mut self) {
        self.outputs.extend(self.holdings.close_all().map(LeaseOutput::Close));
    }

    /// A lost shard is reopened only after a pause, because it may be lost again at once.
    fn released(&mut self, shard: ShardId) {
        match self.holdings.release(shard) {
            Some(Release::Closed) => self.renew_now(),
            Some(Release::Lost) => self.round_at = self.seen_at + self.options.retry_pause(),
            None => {}
        }
    }

    fn look(&mut self) {
        self.curious = true;
        self.round_at = self.round_at.min(self.seen_at);
    }

    fn leave(&mut self) {
        if !self.leaving {
            self.leaving = true;
            self.stays_until = self.seen_at + self.options.farewell();
        }
        self.close_all();
        self.renew_now();
    }

    /// Writes the row again as soon as no other request is in flight.
    fn renew_now(&mut self) {
        self.outdated = true;
        self.round_at = self.seen_at;
    }
}
