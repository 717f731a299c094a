//! Which node serves which shards. Each node has one lease: a registry row of its own that it renews
//! by compare-and-set and in which it lists the shards it holds. All that nodes know of each other
//! stands in these rows, so that all of them compute the same fair share.
//!
//! | standing | input | becomes |
//! |---|---|---|
//! | outside | a read; its row is absent, gone, its own or expired | outside, writes its row |
//! | outside | a read; a node is alive that it cannot speak with | outside, until that one has gone |
//! | outside | its row was written | member |
//! | member | its row was renewed | member, for another lease |
//! | member | somebody else wrote its row | outside; all shards close |
//! | member | a whole term without a renewal | member; all shards close |
//! | member | `Leave` | member until others have taken its shards, for a while at most, then left |
//! | member | `Leave`, and a whole term without a renewal | left when all shards are released |
//! | alone | `Leave` | alone until all shards are released, then left |
//!
//! Why no shard is served by two nodes whose leases are both valid by their own clocks:
//! - A node lists a shard, *then* reads all rows, and opens the shard only if nobody else lists it.
//!   Of two nodes that list the same shard, at least one sees the other's row.
//! - A row stops listing a shard only when its node has released it, or when another node expelled
//!   that node: by compare-and-set on a row that it saw unchanged for a whole lease. If leases differ
//!   it is the longer one, because each row says how long its node's lease is.
//! - A node trusts its lease only for a term that began *before* it asked for the renewal and is
//!   shorter than a lease by a margin, which is for clocks that run at different speeds. A node that
//!   was paused finds its term over, and its next renewal refused.
//!
//! Writes do not depend on any of this: the shard's epoch fences those. The lease is for answers
//! that need no commit, and for moving shards without a fight.
//!
//! The clock comes in as `monotonic`: time since any fixed moment, never wall time. It must count
//! the time that the machine is suspended (`CLOCK_BOOTTIME` on Linux); if it stands still while other
//! clocks run, answers without a commit may be old.

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
    round::{Dead, Request},
    watch::Watches,
};

pub use self::{
    options::LeaseOptions,
    row::{NodeRow, NodeRowError, NodeState},
};

/// Names of nodes' rows in the registry begin with this. A node that left keeps its row for its
/// return, so names should be few: those of hosts, not of processes.
pub const NODE_PREFIX: &str = "node/";

/// The lease of one node.
#[derive(Debug)]
pub struct Lease {
    options: LeaseOptions,
    standing: Standing,
    leaving: bool,
    /// Until when a node that leaves waits for others to take over.
    stays_until: Duration,
    /// Others have what a node that leaves has released, or it does not wait for them any longer.
    taken_over: bool,
    /// It has had its whole share.
    settled: bool,
    /// The row does not say what it should.
    outdated: bool,
    /// There is something new in the rows that was not read yet.
    curious: bool,
    /// What the row said when it was last written.
    told: Option<(NodeState, BTreeSet<ShardId>)>,
    /// Version of the node's row as it last knew it.
    version: u64,
    /// Counts the attempts to write the row.
    counter: u64,
    /// When the last of them was made.
    asked_at: Duration,
    /// When the rows were asked for, and when those were that it has.
    reading_since: Duration,
    read_at: Duration,
    /// It may or may not have been written.
    unsure: bool,
    term: Option<Term>,
    /// It was good after the last message.
    good: bool,
    holdings: Holdings,
    watches: Watches,
    /// Dead nodes whose rows are to be marked.
    dead: Vec<Dead>,
    addresses: BTreeMap<ShardId, String>,
    nodes: BTreeSet<String>,
    /// Rows of other nodes whose leases have another length than this one's.
    other_leases: BTreeMap<String, Duration>,
    /// Another process seems to be alive under this node's name.
    name_taken: bool,
    /// The row of a node that is alive, and with which this one cannot share the shards.
    stranger: Option<String>,
    request: Option<Request>,
    round_at: Duration,
    seen_at: Duration,
    outputs: VecDeque<LeaseOutput>,
}

/// One thing that happens to a node's lease. Every request is answered once, failed ones too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseMessage {
    /// Time passed.
    Tick,
    /// All rows with [`NODE_PREFIX`].
    Registry(Vec<RegistryRow>),
    /// They could not be read.
    ReadFailed,
    /// Whether the row was written; if not, another version is stored.
    Written(bool),
    /// The row may or may not be written.
    WriteFailed,
    /// The shard is no longer served here: it was closed and its commits are done, or it was lost.
    ShardReleased(ShardId),
    /// Another node says that there is something new in the rows.
    Look,
    /// Hand over everything and leave.
    Leave,
}

/// One thing that a node's lease asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseOutput {
    /// Read all rows with [`NODE_PREFIX`].
    ReadRegistry,
    /// Write a row, by compare-and-set.
    PutRegistry(RegistryRow),
    /// Claim the shard's epoch and serve it.
    Open(ShardId),
    /// Stop serving the shard; say [`LeaseMessage::ShardReleased`] when its commits are done.
    Close(ShardId),
    /// The lease was good and is so no more: nobody is answered, and workers are better off elsewhere.
    Lost,
    /// Tell all other nodes to look at the rows, which may move shards.
    Tell,
    /// Everything is handed over.
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// No other process can reach the store: all shards are this node's, without any row.
    Alone,
    Outside,
    Member,
    Left,
}

impl Lease {
    /// A node among others. It asks for nothing until the first [`Self::handle`].
    pub fn new(options: LeaseOptions) -> Self {
        Self::with_standing(options, Standing::Outside)
    }

    /// The one node of a store that no other process can open. It needs no row and no renewal.
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

    /// Takes one message. Drain [`Self::poll`] afterwards.
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

    /// A node that is alone has nobody to lose its shards to.
    fn notice_loss(&mut self, monotonic: Duration) {
        let good = self.standing != Standing::Alone && self.may_answer(monotonic);
        if std::mem::replace(&mut self.good, good) && !good {
            self.outputs.push_back(LeaseOutput::Lost);
        }
    }

    /// The next thing that the lease asks for.
    pub fn poll(&mut self) -> Option<LeaseOutput> {
        self.outputs.pop_front()
    }

    /// When to say [`LeaseMessage::Tick`], should nothing else happen before.
    pub fn wake_at(&self) -> Option<Duration> {
        let good = self.term.filter(|term| term.covers(self.seen_at));
        let lapse_at = good.filter(|_| self.holdings.any_served()).map(|term| term.until);
        self.next_round_at().into_iter().chain(lapse_at).min()
    }

    /// An open shard may answer without a commit at this moment: the lease is valid. A closing one
    /// never may.
    pub fn may_answer(&self, monotonic: Duration) -> bool {
        match self.standing {
            Standing::Alone => true,
            Standing::Outside | Standing::Left => false,
            Standing::Member => self.term.is_some_and(|term| term.covers(monotonic)),
        }
    }

    /// The shard is open here.
    pub fn serves(&self, shard: ShardId) -> bool {
        self.holdings.open(shard)
    }

    /// Where each shard was when the rows were last read.
    pub fn addresses(&self) -> &BTreeMap<ShardId, String> {
        &self.addresses
    }

    /// When the rows were asked for that were read last: what happened before is in them.
    pub const fn read_at(&self) -> Duration {
        self.read_at
    }

    /// Addresses of all nodes that had not gone when the rows were last read, this one included.
    pub fn nodes(&self) -> &BTreeSet<String> {
        &self.nodes
    }

    /// Names of the rows whose nodes were seen to miss renewals. Those of nodes that have gone are among
    /// them: nobody renews them.
    pub fn silent(&self) -> impl Iterator<Item = &str> {
        self.watches.silent()
    }

    /// The node waits outside because another process seems to be alive under its name: its own former
    /// one until its lease is over, or one that somebody else has started.
    pub const fn name_taken(&self) -> bool {
        self.name_taken
    }

    /// The row of a node that is alive and keeps this one outside: the two cannot speak with each other,
    /// because one of them has no address.
    pub fn stranger(&self) -> Option<&str> {
        self.stranger.as_deref()
    }

    /// Names of the rows of other nodes whose leases have another length than this one's, and that
    /// length.
    pub fn other_leases(&self) -> &BTreeMap<String, Duration> {
        &self.other_leases
    }

    /// Until when [`Self::may_answer`] holds, if nothing else happens; none if it does not, and
    /// [`Duration::MAX`] for a node that is alone.
    pub fn good_until(&self) -> Option<Duration> {
        match self.standing {
            Standing::Alone => Some(Duration::MAX),
            Standing::Outside | Standing::Left => None,
            Standing::Member => self.term.map(|term| term.until),
        }
    }

    /// The node has had its whole share of the shards at some time, since it was started.
    pub const fn settled(&self) -> bool {
        matches!(self.standing, Standing::Alone) || self.settled
    }

    fn close_all(&mut self) {
        self.outputs.extend(self.holdings.close_all().map(LeaseOutput::Close));
    }

    /// A shard that was lost is opened again after a pause: it may be lost at once.
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

    /// The row is written again as soon as no other request is under way.
    fn renew_now(&mut self) {
        self.outdated = true;
        self.round_at = self.seen_at;
    }
}
