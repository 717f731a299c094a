//! The epochs of all shards, in memory. Only the writer changes them, so checking a batch needs no
//! read.

use abide_core::ids::ShardId;
use abide_store::{Batch, CommitError};

type Table = [u64; ShardId::COUNT as usize];

/// The epochs on the disk, and those that the open transaction leaves.
#[derive(Clone)]
pub(super) struct Epochs {
    settled: Table,
    current: Table,
}

impl Epochs {
    pub(super) fn new(stored: impl IntoIterator<Item = (ShardId, u64)>) -> Self {
        let mut settled = [0; ShardId::COUNT as usize];
        for (shard, epoch) in stored {
            settled[usize::from(shard.number())] = epoch;
        }
        Self { settled, current: settled }
    }

    /// Whether the batch has the shard's current epoch.
    pub(super) fn check(&self, batch: &Batch) -> Result<(), CommitError> {
        let stored = self.current[usize::from(batch.shard.number())];
        if stored == batch.epoch {
            return Ok(());
        }
        Err(CommitError::Stale { shard: batch.shard, stored, batch: batch.epoch })
    }

    /// Raises the epoch of the shard.
    pub(super) fn raise(&mut self, shard: ShardId, epoch: u64) -> Result<(), CommitError> {
        let stored = &mut self.current[usize::from(shard.number())];
        if epoch <= *stored {
            return Err(CommitError::claim_not_higher(shard, *stored, epoch));
        }
        *stored = epoch;
        Ok(())
    }

    /// The transaction is on the disk.
    pub(super) fn settle(&mut self) {
        self.settled = self.current;
    }

    /// The transaction was rolled back.
    pub(super) fn revert(&mut self) {
        self.current = self.settled;
    }
}
