//! The shards that a node has, or is about to have, or still has.
//!
//! | hold | input | becomes |
//! |---|---|---|
//! | none | it is our share, and nobody lists it | claimed |
//! | claimed | our row lists it now | listed |
//! | claimed, listed | it is not our share any more; we leave, or our lease is over | none |
//! | listed | it is our share, and nobody else lists it | open |
//! | open | it is not our share any more; we leave, or our lease is over | closing |
//! | open | it was lost | listed, to be opened again by the next round |
//! | closing | it was released | none |
//!
//! Our row lists whatever is held at all.

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
pub(super) struct Verdict {
    /// It is this node's share.
    pub(super) ours: bool,
    /// Another node lists it, or may hold it.
    pub(super) taken: bool,
}

/// Why a shard is served no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    Closed,
    Lost,
}

/// All shards that are held.
#[derive(Debug, Default)]
pub(super) struct Holdings(BTreeMap<ShardId, Hold>);

impl Holdings {
    /// Judges one shard by rows that were read after they listed what is listed here.
    pub(super) fn judge(&mut self, shard: ShardId, verdict: Verdict) -> Option<LeaseOutput> {
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

    /// Gives up all claims and closes all open shards; answers which those were.
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

    /// The shard is served no more: it was closed, or it was lost.
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

    /// Opens whatever is neither open nor closing, for a node that is alone.
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

    /// Some shard is open or has not finished closing.
    pub(super) fn any_served(&self) -> bool {
        self.0.values().any(|hold| matches!(hold, Hold::Open | Hold::Closing))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
