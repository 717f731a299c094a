//! The rounds of a lease: renew the row if it is due, then read all rows, then expel dead nodes,
//! with one request in flight at a time.
//!
//! | request | answer | next |
//! |---|---|---|
//! | read | rows | decided by the survey: a write, expulsions, or a pause |
//! | read | failed | the same after a pause |
//! | renewal | written | read |
//! | renewal | refused | outside: read, when all shards are released |
//! | renewal | failed: outcome unknown | read after a pause, and see whether it was written |
//! | expulsion | written or refused | the next expulsion, or read |
//! | expulsion | failed | the next round after a pause |

use std::{collections::BTreeSet, time::Duration};

use abide_core::ids::ShardId;
use abide_store::rows::RegistryRow;

use super::{Lease, LeaseOutput, NODE_PREFIX, NodeRow, NodeState, Standing};

/// A node to expel, with the version of its row that was watched.
#[derive(Clone, Debug)]
pub(super) struct Dead {
    pub(super) name: String,
    pub(super) version: u64,
    pub(super) row: Option<NodeRow>,
}

/// The request in flight to the store.
#[derive(Clone, Debug)]
pub(super) enum LeaseRequest {
    Read,
    Renewal { state: NodeState, shards: BTreeSet<ShardId> },
    Expulsion,
}

impl Lease {
    /// Begins the next round if it is due.
    pub(super) fn proceed(&mut self) {
        if self.departed() {
            self.depart();
        } else if self.next_round_at().is_some_and(|at| at <= self.seen_at) {
            match self.standing {
                Standing::Alone => self.open_rest(),
                Standing::Outside => self.ask_read(),
                Standing::Member if !self.unsure && self.renewal_due() => self.ask_renewal(),
                Standing::Member => self.ask_read(),
                Standing::Left => {}
            }
        }
    }

    /// When the next round begins, unless it waits for something other than time.
    pub(super) fn next_round_at(&self) -> Option<Duration> {
        let waits = match self.standing {
            Standing::Alone => self.leaving || self.holdings.rest().next().is_none(),
            Standing::Outside => !self.holdings.is_empty(),
            Standing::Member => false,
            Standing::Left => true,
        };
        (!waits && self.request.is_none()).then_some(self.round_at)
    }

    fn renewal_due(&self) -> bool {
        self.outdated || self.seen_at >= self.asked_at + self.options.renewal_interval()
    }

    /// Whether a leaving node can go without another write: it has no row, does not own it any
    /// more, or cannot renew it, in which case others will expel it.
    fn departed(&self) -> bool {
        let free = match self.standing {
            Standing::Alone => true,
            Standing::Outside => self.request.is_none(),
            Standing::Member => !self.may_answer(self.seen_at),
            Standing::Left => false,
        };
        self.leaving && free && self.holdings.is_empty()
    }

    fn depart(&mut self) {
        self.standing = Standing::Left;
        self.term = None;
        self.request = None;
        self.outputs.push_back(LeaseOutput::Left);
    }

    fn open_rest(&mut self) {
        self.outputs.extend(self.holdings.open_rest().map(LeaseOutput::Open));
    }

    fn ask_read(&mut self) {
        self.curious = false;
        self.reading_since = self.seen_at;
        self.request = Some(LeaseRequest::Read);
        self.outputs.push_back(LeaseOutput::ReadRegistry);
    }

    /// The term of the lease begins here, before any node can see the renewal.
    pub(super) fn ask_renewal(&mut self) {
        self.counter += 1;
        self.asked_at = self.seen_at;
        self.outdated = false;
        let shards = self.holdings.shards();
        let state = match self.leaving {
            false => NodeState::Alive,
            true if shards.is_empty() && self.taken_over => NodeState::Gone,
            true => NodeState::Leaving,
        };
        let row = NodeRow {
            state,
            incarnation: self.options.incarnation,
            counter: self.counter,
            shards: shards.clone(),
            lease: Some(self.options.lease),
            address: self.options.address.clone(),
        };
        self.request = Some(LeaseRequest::Renewal { state, shards });
        let name = self.row_name();
        self.put(name, self.version, &row);
    }

    /// Marks the row of the next dead node as gone, if it still has the version that was watched.
    /// When there is none left, reads all rows.
    pub(super) fn ask_expulsion(&mut self) {
        let Some(Dead { name, version, row }) = self.dead.pop() else { return self.ask_read() };
        let row = row.as_ref();
        let row = NodeRow {
            state: NodeState::Gone,
            incarnation: row.map_or(0, |row| row.incarnation),
            counter: row.map_or(0, |row| row.counter),
            shards: BTreeSet::new(),
            lease: row.and_then(|row| row.lease),
            address: row.map_or_else(String::new, |row| row.address.clone()),
        };
        self.request = Some(LeaseRequest::Expulsion);
        self.put(name, version, &row);
    }

    fn put(&mut self, name: String, version: u64, row: &NodeRow) {
        let row = RegistryRow { name, version: version + 1, value: row.encode() };
        self.outputs.push_back(LeaseOutput::PutRegistry(row));
    }

    pub(super) fn row_name(&self) -> String {
        format!("{NODE_PREFIX}{}", self.options.node)
    }

    pub(super) fn registry_read(&mut self, rows: Vec<RegistryRow>) {
        if matches!(self.request, Some(LeaseRequest::Read)) {
            self.request = None;
            self.read_at = self.reading_since;
            self.survey(&rows);
        }
    }

    pub(super) fn read_failed(&mut self) {
        if matches!(self.request, Some(LeaseRequest::Read)) {
            self.pause();
        }
    }

    pub(super) fn written(&mut self) {
        match self.request.take() {
            Some(LeaseRequest::Renewal { state, shards }) => self.renewed(state, &shards),
            Some(LeaseRequest::Expulsion) => {
                self.outputs.push_back(LeaseOutput::Tell);
                self.ask_expulsion();
            }
            other @ (Some(LeaseRequest::Read) | None) => self.request = other,
        }
    }

    fn renewed(&mut self, state: NodeState, shards: &BTreeSet<ShardId>) {
        self.standing = Standing::Member;
        self.unsure = false;
        self.version += 1;
        self.term = Some(self.options.term(self.asked_at));
        self.holdings.listed(shards);
        let now = Some((state, shards.clone()));
        if self.told != now {
            self.told = now;
            self.outputs.push_back(LeaseOutput::Tell);
        }
        match state {
            NodeState::Alive if self.leaving => self.renew_now(),
            NodeState::Alive | NodeState::Leaving => self.ask_read(),
            NodeState::Gone => self.depart(),
        }
    }

    pub(super) fn write_refused(&mut self) {
        match self.request.take() {
            Some(LeaseRequest::Renewal { .. }) => self.fence(),
            Some(LeaseRequest::Expulsion) => self.ask_expulsion(),
            other @ (Some(LeaseRequest::Read) | None) => self.request = other,
        }
    }

    pub(super) fn write_failed(&mut self) {
        match &self.request {
            Some(LeaseRequest::Renewal { .. }) => {
                self.unsure = true;
                self.pause();
            }
            Some(LeaseRequest::Expulsion) => {
                self.dead.clear();
                self.pause();
            }
            Some(LeaseRequest::Read) | None => {}
        }
    }

    /// Another process wrote this node's row, or an unreachable node joined at the same time: this
    /// node leaves, and tries to join again once all its shards are released.
    pub(super) fn fence(&mut self) {
        self.standing = Standing::Outside;
        self.unsure = false;
        self.term = None;
        self.told = None;
        self.close_all();
        self.round_at = self.seen_at;
    }

    /// Ends the request; the next round begins after a pause.
    fn pause(&mut self) {
        self.request = None;
        self.round_at = self.seen_at + self.options.retry_pause();
    }
}
