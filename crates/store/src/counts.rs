//! Counts what was committed, for whoever wants to know what a workload costs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a store has committed since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions, each synced once.
    pub transactions: u64,
    /// Batches in them.
    pub batches: u64,
    /// How often something failed that the store does beside its commits, without harm to them.
    pub upkeep_failures: u64,
}

/// Counts while a store's writer works.
#[derive(Debug, Default)]
pub struct Counter {
    transactions: AtomicU64,
    batches: AtomicU64,
    upkeep_failures: AtomicU64,
}

impl Counter {
    /// A transaction with so many batches is on the disk.
    pub fn committed(&self, batches: usize) {
        self.transactions.fetch_add(1, Relaxed);
        self.batches.fetch_add(batches as u64, Relaxed);
    }

    /// Something failed that the store does beside its commits.
    pub fn upkeep_failed(&self) {
        self.upkeep_failures.fetch_add(1, Relaxed);
    }

    /// What was committed until now, and what failed beside it.
    pub fn counts(&self) -> Counts {
        Counts {
            transactions: self.transactions.load(Relaxed),
            batches: self.batches.load(Relaxed),
            upkeep_failures: self.upkeep_failures.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_counts_once_and_each_of_its_batches() {
        let counter = Counter::default();
        counter.committed(3);
        counter.committed(1);
        counter.upkeep_failed();
        let expected = Counts { transactions: 2, batches: 4, upkeep_failures: 1 };
        assert_eq!(counter.counts(), expected);
    }
}
