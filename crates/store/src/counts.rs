//! Counts what was committed, for whoever wants to know what a workload costs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a store has committed since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions, each synced once.
    pub transactions: u64,
    /// Batches in them.
    pub batches: u64,
}

/// Counts while a store's writer works.
#[derive(Debug, Default)]
pub struct Counter {
    transactions: AtomicU64,
    batches: AtomicU64,
}

impl Counter {
    /// A transaction with so many batches is on the disk.
    pub fn committed(&self, batches: usize) {
        self.transactions.fetch_add(1, Relaxed);
        self.batches.fetch_add(batches as u64, Relaxed);
    }

    /// What was committed until now.
    pub fn counts(&self) -> Counts {
        Counts {
            transactions: self.transactions.load(Relaxed),
            batches: self.batches.load(Relaxed),
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
        assert_eq!(counter.counts(), Counts { transactions: 2, batches: 4 });
    }
}
