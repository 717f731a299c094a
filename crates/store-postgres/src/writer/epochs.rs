//! Epochs of the shards that a transaction has locked: as stored, and as its batches raise them.

use std::collections::BTreeMap;

use abide_core::ids::ShardId;
use abide_store::{Batch, CommitError, Write};

pub(super) struct Epochs(BTreeMap<ShardId, u64>);

impl Epochs {
    pub(super) fn new(locked: impl IntoIterator<Item = (ShardId, u64)>) -> Self {
        Self(locked.into_iter().collect())
    }

    /// Checks that the batch has the epoch of its shard and that its claims raise it, and returns
    /// the resulting epoch.
    pub(super) fn check(&self, batch: &Batch) -> Result<u64, CommitError> {
        let shard = batch.shard;
        let Some(current) = self.0.get(&shard).copied() else {
            return Err(CommitError::Stopped(format!("the row of shard {shard} is missing")));
        };
        if current != batch.epoch {
            return Err(CommitError::Stale { shard, stored: current, batch: batch.epoch });
        }
        let mut raised = current;
        for write in &batch.writes {
            if let Write::Claim { epoch, .. } = write {
                if *epoch <= raised {
                    return Err(CommitError::claim_not_higher(shard, raised, *epoch));
                }
                raised = *epoch;
            }
        }
        Ok(raised)
    }

    /// Sets the epoch that later batches of the transaction see.
    pub(super) fn set(&mut self, shard: ShardId, epoch: u64) {
        self.0.insert(shard, epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_must_raise_the_epoch_which_later_batches_see() {
        let shard = ShardId::new(3).unwrap();
        let mut epochs = Epochs::new([(shard, 4)]);
        let batch = |epoch, claims: &[u64]| Batch {
            shard,
            epoch,
            writes: claims
                .iter()
                .map(|epoch| Write::Claim { epoch: *epoch, owner: String::new() })
                .collect(),
        };
        let refused = Err(CommitError::claim_not_higher(shard, 6, 6));
        assert_eq!(epochs.check(&batch(4, &[6, 6])), refused);
        assert_eq!(epochs.check(&batch(4, &[6])), Ok(6));
        epochs.set(shard, 6);
        let stale = Err(CommitError::Stale { shard, stored: 6, batch: 4 });
        assert_eq!(epochs.check(&batch(4, &[])), stale);
        assert_eq!(epochs.check(&batch(6, &[])), Ok(6));
    }
}
