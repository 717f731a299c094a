//! Latency statistics.

use std::time::Duration;

/// Measured times, sorted.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<Duration>);

impl From<Vec<Duration>> for Latencies {
    fn from(mut latencies: Vec<Duration>) -> Self {
        latencies.sort_unstable();
        Self(latencies)
    }
}

impl Latencies {
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Percentile in milliseconds.
    pub fn percentile_ms(&self, percent: usize) -> f64 {
        let index = (self.0.len() * percent / 100).min(self.0.len().max(1) - 1);
        self.0.get(index).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    }

    /// Maximum in milliseconds.
    pub fn max_ms(&self) -> f64 {
        self.0.last().map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_count_from_the_shortest() {
        let latencies =
            Latencies::from((1..=200).rev().map(Duration::from_millis).collect::<Vec<_>>());
        assert_eq!(latencies.percentile_ms(50), 101.0);
        assert_eq!(latencies.percentile_ms(99), 199.0);
        assert_eq!(latencies.max_ms(), 200.0);
        assert_eq!(Latencies::default().percentile_ms(99), 0.0);
    }
}
