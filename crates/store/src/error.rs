//! Errors of a store, classified by what the caller can do.

use abide_core::ids::{RunId, ShardId};

/// Why a commit failed, classified by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Another owner has claimed the shard. Nothing was written; stop serving it.
    #[error("shard {shard} is at epoch {stored}, the batch at {batch}: another owner took it")]
    Stale {
        /// Shard of the batch.
        shard: ShardId,
        /// Current epoch in the store.
        stored: u64,
        /// Epoch of the batch.
        batch: u64,
    },
    /// The batch contradicts the stored rows. Nothing was written; reload and decide again.
    #[error("batch refused: {0}")]
    Refused(String),
    /// Nothing was written; the same batch may succeed later.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// Nothing was written because the disk is full; the same batch may succeed once there is
    /// space.
    #[error("the disk of the store is full: {0}")]
    Full(String),
    /// The batch may or may not have been written. Claim the shard again, then read.
    #[error("outcome of the commit unknown: {0}")]
    Unknown(String),
    /// The store accepts no further writes until it is reopened. Nothing of this batch was written.
    #[error("store stopped: {0}")]
    Stopped(String),
}

impl CommitError {
    /// Whether nothing was written and the same batch may succeed later.
    pub const fn passes(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Full(_))
    }

    /// Refuses a duplicate log row, in the wording that every backend uses.
    pub fn log_row_exists(run: RunId, sequence: u64) -> Self {
        Self::Refused(format!("run {run} already has a log row {sequence}"))
    }

    /// Refuses a claim that does not raise the shard's epoch.
    pub fn claim_not_higher(shard: ShardId, stored: u64, claimed: u64) -> Self {
        Self::Refused(format!("shard {shard} is at epoch {stored}, which {claimed} does not raise"))
    }
}

/// Why a read failed, classified by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The same read may succeed later.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// The stored data cannot be decoded.
    #[error("store corrupt: {0}")]
    Corrupt(String),
}
