//! Why a store did not do what it was asked, named by what the caller can do about it.

use abide_core::ids::{RunId, ShardId};

/// Why a commit did not answer `Ok`, named by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Another owner claimed the shard. Nothing was written; stop serving it.
    #[error("shard {shard} is at epoch {stored}, the batch at {batch}: another owner took it")]
    Stale {
        /// The shard.
        shard: ShardId,
        /// The epoch in the store.
        stored: u64,
        /// The epoch of the batch.
        batch: u64,
    },
    /// The batch contradicts what is stored. Nothing was written; reload and decide anew.
    #[error("batch refused: {0}")]
    Refused(String),
    /// Nothing was written; the same batch may succeed later.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// Nothing was written, because there is no room; the same batch may succeed when there is.
    #[error("the disk of the store is full: {0}")]
    Full(String),
    /// The writes may or may not be there. Claim the shard anew, then read.
    #[error("outcome of the commit unknown: {0}")]
    Unknown(String),
    /// The store takes no further write until it is opened again. Nothing of this batch was written.
    #[error("store stopped: {0}")]
    Stopped(String),
}

impl CommitError {
    /// Nothing was written, and the store may take the same later.
    pub const fn passes(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Full(_))
    }

    /// The refusal of a log row that is there already, in the words that every backend uses.
    pub fn log_row_exists(run: RunId, sequence: u64) -> Self {
        Self::Refused(format!("run {run} already has a log row {sequence}"))
    }

    /// The refusal of a claim that does not raise the shard's epoch.
    pub fn claim_not_higher(shard: ShardId, stored: u64, claimed: u64) -> Self {
        Self::Refused(format!("shard {shard} is at epoch {stored}, which {claimed} does not raise"))
    }
}

/// Why a read failed, named by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The same read may succeed later.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// What is stored cannot be read.
    #[error("store corrupt: {0}")]
    Corrupt(String),
}
