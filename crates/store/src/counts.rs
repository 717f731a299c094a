//! Counters of commits, to measure what a workload costs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of commits since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of transactions, each synced once.
    pub transactions: u64,
    /// Number of batches in those transactions.
    pub batches: u64,
    /// Number of failed maintenance steps, which do not affect commits.
    pub upkeep_failures: u64,
}

/// Counter that a store's writer increments.
#[derive(Debug, Default)]
pub struct Counter {
    transactions: AtomicU64,
    batches: AtomicU64,
    upkeep_failures: AtomicU64,
}

impl Counter {
    /// Counts a durable transaction with this many batches.
    pub fn committed(&self, batches: usize) {
        self.transactions.fetch_add(1, Relaxed);
        self.batches.fetch_add(batches as u64, Relaxed);
    }

    /// Counts a failed maintenance step.
    pub fn upkeep_failed(&self) {
        self.upkeep_failures.fetch_add(1, Relaxed);
    }

    /// Current values.
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
