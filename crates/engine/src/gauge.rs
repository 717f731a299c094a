//! Counts work in flight, so that a test that moves time knows exactly when everything is idle: no
//! message waits, no shard steps, no read or commit runs. No decision depends on it. With the
//! system clock it is never read, and counts nothing, because all threads would contend for the
//! counters.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::{Notify, futures::Notified};

/// Counts work in flight in an engine, and in tests that add to it. Clones share the counters.
#[derive(Clone, Debug)]
pub struct Gauge {
    counters: Arc<GaugeCounts>,
    counts: bool,
}

#[derive(Debug, Default)]
struct GaugeCounts {
    /// Both counters only grow, so two equal readings mean that nothing ran in between.
    begun: AtomicU64,
    ended: AtomicU64,
    idle: Notify,
}

/// A piece of work that is in flight until this is dropped. Work that it causes must begin before
/// that.
#[derive(Debug)]
#[must_use = "dropped at once, it counts for nothing"]
pub struct InFlight(Option<Arc<GaugeCounts>>);

impl Gauge {
    /// A gauge that counts, or one that is never idle.
    pub(crate) fn new(counts: bool) -> Self {
        Self { counters: Arc::default(), counts }
    }

    /// Begins a piece of work.
    pub fn begin(&self) -> InFlight {
        InFlight(self.counts.then(|| {
            self.counters.begun.fetch_add(1, Ordering::SeqCst);
            Arc::clone(&self.counters)
        }))
    }

    /// If nothing is in flight, returns the number of pieces of work so far: as long as it stays
    /// the same, nothing has happened. A gauge that does not count returns none.
    pub fn idle(&self) -> Option<u64> {
        // In this order: what has ended had begun, so if both are equal, nothing was in flight in
        // between.
        let ended = self.counters.ended.load(Ordering::SeqCst);
        let begun = self.counters.begun.load(Ordering::SeqCst);
        (self.counts && begun == ended).then_some(begun)
    }

    /// Ends the next time, from this call on, that the last piece of work in flight ends.
    pub fn until_idle(&self) -> Notified<'_> {
        self.counters.idle.notified()
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let Some(counters) = &self.0 else { return };
        let ended = counters.ended.fetch_add(1, Ordering::SeqCst) + 1;
        if ended == counters.begun.load(Ordering::SeqCst) {
            counters.idle.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_idle_when_all_has_ended() {
        let gauge = Gauge::new(true);
        let before = gauge.idle();
        let (one, two) = (gauge.begin(), gauge.begin());
        drop(one);
        assert_eq!(gauge.idle(), None);
        drop(two);
        assert!(gauge.idle().is_some());
        assert_ne!(gauge.idle(), before);
    }

    #[test]
    fn without_counting_nobody_is_told_that_it_is_idle() {
        let gauge = Gauge::new(false);
        drop(gauge.begin());
        assert_eq!(gauge.idle(), None);
    }

    #[tokio::test]
    async fn the_last_end_is_told() {
        let gauge = Gauge::new(true);
        let work = gauge.begin();
        let idle = gauge.until_idle();
        drop(work);
        idle.await;
    }
}
