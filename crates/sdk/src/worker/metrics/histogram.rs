//! Durations in buckets of fixed bounds.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// The upper bounds of the buckets, in milliseconds: from what a short task takes to an activity of
/// an hour.
pub(crate) const BOUNDS_MS: [u64; 12] =
    [1, 5, 10, 50, 100, 500, 1_000, 5_000, 10_000, 60_000, 600_000, 3_600_000];

/// Durations, counted while they come.
#[derive(Default)]
pub(crate) struct Histogram {
    /// One for each bound, and one for what is longer than all of them.
    buckets: [AtomicU64; BOUNDS_MS.len() + 1],
    sum_micros: AtomicU64,
    #[cfg(feature = "opentelemetry")]
    pub(super) observed: super::observer::Observed,
}

/// Durations, as they were counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistogramSnapshot {
    /// For each bucket its upper bound, and how many durations are not longer; `None` has no bound,
    /// and counts all of them.
    pub buckets: Vec<(Option<Duration>, u64)>,
    /// The sum of all durations.
    pub sum: Duration,
}

impl HistogramSnapshot {
    /// How many durations there are.
    pub fn count(&self) -> u64 {
        self.buckets.last().map_or(0, |(_, count)| *count)
    }
}

impl Histogram {
    pub(crate) fn record(&self, duration: Duration) {
        let bucket = BOUNDS_MS.partition_point(|bound| Duration::from_millis(*bound) < duration);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Relaxed);
        }
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.sum_micros.fetch_add(micros, Relaxed);
        #[cfg(feature = "opentelemetry")]
        self.observed.record(duration);
    }

    /// The figures; empty if there are none.
    pub(crate) fn figures(&self) -> HistogramSnapshot {
        let bounds = BOUNDS_MS.iter().map(|bound| Some(Duration::from_millis(*bound)));
        let mut total = 0;
        let buckets: Vec<_> = bounds
            .chain([None])
            .zip(&self.buckets)
            .map(|(bound, bucket)| {
                total += bucket.load(Relaxed);
                (bound, total)
            })
            .collect();
        if total == 0 {
            return HistogramSnapshot::default();
        }
        HistogramSnapshot { buckets, sum: Duration::from_micros(self.sum_micros.load(Relaxed)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_in_every_bucket_that_holds_them() {
        let histogram = Histogram::default();
        assert_eq!(histogram.figures(), HistogramSnapshot::default());
        for ms in [1, 2, 100, 100_000_000] {
            histogram.record(Duration::from_millis(ms));
        }
        let figures = histogram.figures();
        let within = |ms| {
            let bound = Some(Duration::from_millis(ms));
            figures.buckets.iter().find(|(it, _)| *it == bound).map(|(_, count)| *count)
        };
        assert_eq!([within(1), within(5), within(50), within(100)], [1, 2, 2, 3].map(Some));
        assert_eq!((within(3_600_000), figures.count()), (Some(3), 4));
        assert_eq!(figures.sum, Duration::from_millis(100_000_103));
    }
}
