//! Planned events, in order of time; at the same time, in order of planning.

use std::{cmp::Reverse, collections::BinaryHeap};

/// Microseconds since the world began. They never go backwards, whatever clocks show.
pub type Micros = u64;

pub const MILLIS: Micros = 1_000;

pub const SECOND: Micros = 1_000_000;

/// A queue of planned events. They are stored separately from their order, because they are large.
#[derive(Debug)]
pub struct Schedule<T> {
    order: BinaryHeap<Reverse<(Micros, u64, usize)>>,
    things: Vec<Option<T>>,
    free: Vec<usize>,
    planned: u64,
}

impl<T> Default for Schedule<T> {
    fn default() -> Self {
        Self { order: BinaryHeap::new(), things: Vec::new(), free: Vec::new(), planned: 0 }
    }
}

impl<T> Schedule<T> {
    pub fn plan(&mut self, at: Micros, what: T) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.things.push(None);
            self.things.len() - 1
        });
        self.things[place] = Some(what);
        self.planned += 1;
        self.order.push(Reverse((at, self.planned, place)));
    }

    /// Takes the next event.
    pub fn take_next(&mut self) -> Option<(Micros, T)> {
        loop {
            let Reverse((at, _, place)) = self.order.pop()?;
            self.free.push(place);
            if let Some(what) = self.things[place].take() {
                return Some((at, what));
            }
        }
    }

    /// Whether such an event is planned.
    pub fn any(&self, such: impl FnMut(&T) -> bool) -> bool {
        self.things.iter().flatten().any(such)
    }

    /// Drops the events for which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for thing in &mut self.things {
            if thing.as_ref().is_some_and(|what| !keep(what)) {
                *thing = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earliest_first_then_in_order_of_planning() {
        let mut schedule = Schedule::default();
        for (at, what) in [(5, 'c'), (1, 'a'), (5, 'd'), (2, 'b'), (3, 'x')] {
            schedule.plan(at, what);
        }
        schedule.retain(|what| *what != 'x');
        let order: String =
            std::iter::from_fn(|| schedule.take_next()).map(|(_, what)| what).collect();
        assert_eq!(order, "abcd");
    }
}
