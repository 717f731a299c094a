//! What will happen, in order of time; at the same time, in order of planning.

use std::{cmp::Ordering, collections::BinaryHeap};

/// Microseconds since the world began. They never run backwards, whatever clocks show.
pub type Micros = u64;

/// One millisecond.
pub const MILLIS: Micros = 1_000;

/// One second.
pub const SECOND: Micros = 1_000_000;

/// A queue of planned things.
#[derive(Debug)]
pub struct Schedule<T> {
    heap: BinaryHeap<Planned<T>>,
    planned: u64,
}

#[derive(Debug)]
struct Planned<T> {
    at: Micros,
    order: u64,
    what: T,
}

impl<T> Schedule<T> {
    /// Nothing is planned.
    pub const fn new() -> Self {
        Self { heap: BinaryHeap::new(), planned: 0 }
    }

    /// Plans a thing.
    pub fn plan(&mut self, at: Micros, what: T) {
        self.planned += 1;
        self.heap.push(Planned { at, order: self.planned, what });
    }

    /// Takes the next thing.
    pub fn next(&mut self) -> Option<(Micros, T)> {
        self.heap.pop().map(|planned| (planned.at, planned.what))
    }

    /// Forgets what does not fit.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.heap.retain(|planned| keep(&planned.what));
    }
}

impl<T> Planned<T> {
    const fn key(&self) -> (Micros, u64) {
        (self.at, self.order)
    }
}

impl<T> PartialEq for Planned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Planned<T> {}

impl<T> PartialOrd for Planned<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The heap gives the greatest first, so the earliest is the greatest.
impl<T> Ord for Planned<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earliest_first_then_in_order_of_planning() {
        let mut schedule = Schedule::new();
        for (at, what) in [(5, 'c'), (1, 'a'), (5, 'd'), (2, 'b'), (3, 'x')] {
            schedule.plan(at, what);
        }
        schedule.retain(|what| *what != 'x');
        let order: String = std::iter::from_fn(|| schedule.next()).map(|(_, what)| what).collect();
        assert_eq!(order, "abcd");
    }
}
