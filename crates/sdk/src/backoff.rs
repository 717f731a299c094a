//! Waits between repeated tries, each longer than the one before.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(10);

/// The next wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// Waits of 10 ms, 20 ms and so on, up to `longest`.
    pub(crate) fn new(longest: Duration) -> Self {
        Self { next: FIRST.min(longest), longest }
    }

    /// How long to wait now.
    pub(crate) fn step(&mut self) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(self.longest);
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut backoff = Backoff::new(Duration::from_millis(50));
        let waits: Vec<_> = (0..4).map(|_| backoff.step().as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 50]);
    }
}
