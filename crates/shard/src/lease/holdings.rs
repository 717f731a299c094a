//! The shards that a node claims, serves or is still closing.
//!
//! | hold | input | becomes |
//! |---|---|---|
//! | none | it is our share, and no other node lists it | claimed |
//! | claimed | our row lists it now | listed |
//! | claimed, listed | it is no longer our share; we leave, or our lease has expired | none |
//! | listed | it is our share, and no other node lists it | open |
//! | open | it is no longer our share; we leave, or our lease has expired | closing |
//! | open | it was lost | listed, to be opened again by the next round |
//! | closing | it was released | none |
//!
//! Our row lists every shard that is held in any of these ways.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::ids::ShardId;

use super::LeaseOutput;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Claimed,
    Listed,
    Open,
    Closing,
}

/// What the rows say about a shard.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShardClaim {
    /// The shard belongs to this node's share.
    pub(super) ours: bool,
    /// Another node lists the shard, or may hold it.
    pub(super) taken: bool,
}

/// Why a shard is no longer served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    Closed,
    Lost,
}

/// All shards that are held.
#[derive(Debug, Default)]
pub(super) struct Holdings(BTreeMap<ShardId, Hold>);

impl Holdings {
    /// Decides about one shard, by rows that were read after this node's row listed the listed
    /// shards.
    pub(super) fn judge(&mut self, shard: ShardId, verdict: ShardClaim) -> Option<LeaseOutput> {
        match (self.0.get(&shard), verdict.ours) {
            (None, true) if !verdict.taken => {
                self.0.insert(shard, Hold::Claimed);
                None
            }
            (Some(Hold::Claimed | Hold::Listed), false) => {
                self.0.remove(&shard);
                None
            }
            (Some(Hold::Listed), true) if !verdict.taken => {
                self.0.insert(shard, Hold::Open);
                Some(LeaseOutput::Open(shard))
            }
            (Some(Hold::Open), false) => {
                self.0.insert(shard, Hold::Closing);
                Some(LeaseOutput::Close(shard))
            }
            (None | Some(_), _) => None,
        }
    }

    /// The node's row lists these shards now.
    pub(super) fn listed(&mut self, shards: &BTreeSet<ShardId>) {
        for (shard, hold) in &mut self.0 {
            if *hold == Hold::Claimed && shards.contains(shard) {
                *hold = Hold::Listed;
            }
        }
    }

    /// Drops all claims and closes all open shards; returns the shards that were open.
    pub(super) fn close_all(&mut self) -> impl Iterator<Item = ShardId> + use<> {
        self.0.retain(|_, hold| matches!(hold, Hold::Open | Hold::Closing));
        let mut closed = Vec::new();
        for (shard, hold) in &mut self.0 {
            if *hold == Hold::Open {
                *hold = Hold::Closing;
                closed.push(*shard);
            }
        }
        closed.into_iter()
    }

    /// The shard is no longer served; returns whether it was closed or lost.
    pub(super) fn release(&mut self, shard: ShardId) -> Option<Release> {
        match self.0.get(&shard)? {
            Hold::Open => {
                self.0.insert(shard, Hold::Listed);
                Some(Release::Lost)
            }
            Hold::Closing => {
                self.0.remove(&shard);
                Some(Release::Closed)
            }
            Hold::Claimed | Hold::Listed => None,
        }
    }

    /// Opens all shards that are neither open nor closing, for a node that is alone.
    pub(super) fn open_rest(&mut self) -> impl Iterator<Item = ShardId> + use<> {
        let rest: Vec<_> = self.rest().collect();
        self.0.extend(rest.iter().map(|shard| (*shard, Hold::Open)));
        rest.into_iter()
    }

    pub(super) fn rest(&self) -> impl Iterator<Item = ShardId> {
        let held = |shard: &ShardId| matches!(self.0.get(shard), Some(Hold::Open | Hold::Closing));
        ShardId::all().filter(move |shard| !held(shard))
    }

    pub(super) fn shards(&self) -> BTreeSet<ShardId> {
        self.0.keys().copied().collect()
    }

    pub(super) fn open(&self, shard: ShardId) -> bool {
        self.0.get(&shard) == Some(&Hold::Open)
    }

    /// Whether any shard is open or has not finished closing.
    pub(super) fn any_served(&self) -> bool {
        self.0.values().any(|hold| matches!(hold, Hold::Open | Hold::Closing))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
