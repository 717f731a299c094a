//! Growing pauses between retries.

use std::time::Duration;

use uuid::Uuid;

const FIRST: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// Pauses of 10 ms, 20 ms and so on, up to `longest`.
    pub(crate) fn new(longest: Duration) -> Self {
        Self { next: FIRST.min(longest), longest }
    }

    pub(crate) fn step(&mut self) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(self.longest);
        step
    }

    /// The next pause with jitter, for many clients that wait for the same server: up to a quarter
    /// shorter, at random, so that they do not retry all at once.
    pub(crate) fn scattered_step(&mut self) -> Duration {
        let step = self.step();
        // A random id gives enough randomness without another dependency.
        let drawn = u32::from(Uuid::new_v4().as_bytes()[15]);
        step - step * drawn / (4 * 256)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut backoff = Backoff::new(Duration::from_millis(50));
        let waits: Vec<_> = (0..4).map(|_| backoff.step().as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 50]);
    }

    #[test]
    fn scattered_waits_differ_but_not_by_much() {
        let longest = Duration::from_millis(400);
        let mut backoff = Backoff { next: longest, longest };
        let waits: BTreeSet<_> = (0..100).map(|_| backoff.scattered_step()).collect();
        assert!(waits.len() > 1);
        assert!(
            waits
                .iter()
                .all(|wait| *wait <= longest && *wait > longest * 3 / 4 - Duration::from_millis(1))
        );
    }
}
