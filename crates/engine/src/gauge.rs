//! Counts what is under way, so that whoever moves time by hand knows exactly when all is idle: no
//! message waits, no shard steps, no read or commit runs. It decides nothing. Nobody reads it while time
//! moves by itself, and then nothing is counted: all threads would share the counters.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::{Notify, futures::Notified};

/// What is under way in an engine, and with those who add to it. Clones are the same gauge.
#[derive(Clone, Debug)]
pub struct Gauge {
    counters: Arc<Counters>,
    counts: bool,
}

#[derive(Debug, Default)]
struct Counters {
    /// Only grow, so that two equal readings mean that nothing ran in between.
    begun: AtomicU64,
    ended: AtomicU64,
    idle: Notify,
}

/// Something that is under way until this is dropped. What it leads to must begin before that.
#[derive(Debug)]
#[must_use = "dropped at once, it counts for nothing"]
pub struct Work(Option<Arc<Counters>>);

impl Gauge {
    /// A gauge that counts, or one that shows nothing.
    pub(crate) fn new(counts: bool) -> Self {
        Self { counters: Arc::default(), counts }
    }

    /// Something begins.
    pub fn begin(&self) -> Work {
        Work(self.counts.then(|| {
            self.counters.begun.fetch_add(1, Ordering::SeqCst);
            Arc::clone(&self.counters)
        }))
    }

    /// If nothing is under way: how much there was so far. As long as this stays the same, nothing
    /// has happened. A gauge that does not count never knows.
    pub fn idle(&self) -> Option<u64> {
        // In this order: what has ended had begun, so if both are equal nothing was open in between.
        let ended = self.counters.ended.load(Ordering::SeqCst);
        let begun = self.counters.begun.load(Ordering::SeqCst);
        (self.counts && begun == ended).then_some(begun)
    }

    /// Ends when the last thing under way ends the next time, counted from this call.
    pub fn until_idle(&self) -> Notified<'_> {
        self.counters.idle.notified()
    }
}

impl Drop for Work {
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
