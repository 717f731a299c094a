//! What a shard must do at some time: the near part of the due index, and deadlines that only memory
//! knows. Bounded: when there are too many, the latest leave memory and are read again later.

use std::{collections::BTreeSet, time::Duration};

use abide_core::{
    ids::{EventNumber, RunId, StartId},
    run::TimerKey,
    time::Timestamp,
};
use abide_store::rows::DueKey;
use bytes::Bytes;

/// One thing to do at some time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// A due entry of a run.
    Due(RunId, TimerKey),
    /// A due time that only memory knows: the stored one has passed, and the run was alive since.
    LookAgain(RunId, TimerKey),
    /// A started workflow task's time is up.
    Turn(RunId, StartId),
    /// A workflow task that was held back can be handed out.
    TaskReady(RunId),
    /// A worker's grace to present this attempt is over.
    Grace(RunId, EventNumber),
    /// Effects without an answer are sent again.
    Resend,
    /// No repeat of a confirmed effect can be under way any more: source run and number.
    Forget(RunId, u64),
    /// Look for runs that nothing would resume.
    Sweep,
    /// Take the shard into memory again after a reset.
    Reopen,
}

/// Alarms in order of time.
#[derive(Debug)]
pub struct Alarms {
    at: BTreeSet<(Timestamp, Alarm)>,
    due_count: usize,
    due_max: usize,
    /// All due entries before here are in memory.
    horizon: Timestamp,
    /// Where the next read of the due index begins.
    cursor: Option<DueKey>,
    /// A read of the due index up to here is under way.
    reading: Option<Timestamp>,
}

impl Alarms {
    /// No alarms; at most `due_max` due entries are kept.
    pub fn new(due_max: usize) -> Self {
        Self {
            at: BTreeSet::new(),
            due_count: 0,
            due_max,
            horizon: Timestamp::EPOCH,
            cursor: None,
            reading: None,
        }
    }

    /// Sets an alarm that only memory knows.
    pub fn set(&mut self, at: Timestamp, alarm: Alarm) {
        self.insert(at, alarm);
    }

    /// Takes back an alarm that only memory knows.
    pub fn clear(&mut self, at: Timestamp, alarm: Alarm) {
        self.remove(at, alarm);
    }

    /// A due entry was written: kept if it is near, or if a read under way may have missed it.
    pub fn set_due(&mut self, at: Timestamp, run: RunId, key: TimerKey) {
        if at <= self.reading.unwrap_or(self.horizon).max(self.horizon) {
            self.insert(at, Alarm::Due(run, key));
            self.trim();
        }
    }

    /// A due entry was removed.
    pub fn clear_due(&mut self, at: Timestamp, run: RunId, key: TimerKey) {
        self.remove(at, Alarm::Due(run, key));
    }

    /// A read of the due index is needed by `now`: it begins after the answered key, and tells of
    /// everything up to `now` plus `window`.
    pub fn begin_read(&mut self, now: Timestamp, window: Duration) -> Option<Option<DueKey>> {
        // What is overdue comes first, and makes room: until then, whatever is read would be dropped.
        let overdue = self.next_at().is_some_and(|at| at <= now);
        if self.read_at(window)? > now || (overdue && self.crowded()) {
            return None;
        }
        self.reading = Some(now.saturating_add(window));
        Some(self.cursor.clone())
    }

    /// When the next read of the due index is needed. Early, while there is room; else at the last
    /// moment.
    pub fn read_at(&self, window: Duration) -> Option<Timestamp> {
        if self.reading.is_some() || self.horizon.never() {
            return None;
        }
        if self.crowded() {
            return Some(self.horizon);
        }
        let margin = window / 2;
        let since_epoch = self.horizon.saturating_since(Timestamp::EPOCH);
        Some(Timestamp::EPOCH.saturating_add(since_epoch.saturating_sub(margin)))
    }

    /// There is little room for more due entries.
    fn crowded(&self) -> bool {
        self.due_count * 2 >= self.due_max.max(2)
    }

    /// What the read under way will tell of.
    pub fn reading_until(&self) -> Option<Timestamp> {
        self.reading
    }

    /// The read ended. A full page tells only about its own part, up to its last row.
    pub fn end_read(&mut self, entries: Vec<(Timestamp, RunId, TimerKey)>, last: Option<DueKey>) {
        let Some(until) = self.reading.take() else { return };
        for (at, run, key) in entries {
            self.insert(at, Alarm::Due(run, key));
        }
        match last {
            Some(last) => {
                self.horizon = last.due;
                self.cursor = Some(last);
            }
            None => self.move_horizon(until),
        }
        self.trim();
    }

    fn move_horizon(&mut self, horizon: Timestamp) {
        self.horizon = horizon;
        self.cursor = Some(DueKey { due: horizon, run: RunId::MAX, timer: Bytes::new() });
    }

    /// Takes the earliest alarm that is due.
    pub fn pop(&mut self, now: Timestamp) -> Option<(Timestamp, Alarm)> {
        let (at, alarm) = self.at.first().filter(|(at, _)| *at <= now)?.clone();
        self.remove(at, alarm.clone());
        Some((at, alarm))
    }

    /// When the next alarm is due.
    pub fn next_at(&self) -> Option<Timestamp> {
        self.at.first().map(|(at, _)| *at)
    }

    fn insert(&mut self, at: Timestamp, alarm: Alarm) {
        let due = matches!(alarm, Alarm::Due(..));
        if self.at.insert((at, alarm)) && due {
            self.due_count += 1;
        }
    }

    fn remove(&mut self, at: Timestamp, alarm: Alarm) {
        let due = matches!(alarm, Alarm::Due(..));
        if self.at.remove(&(at, alarm)) && due {
            self.due_count -= 1;
        }
    }

    /// Drops the latest due entries over the bound, all of one moment together, so that everything
    /// before the new horizon is still in memory.
    fn trim(&mut self) {
        while self.due_count > self.due_max && self.reading.is_none() {
            let is_due = |entry: &&(Timestamp, Alarm)| matches!(entry.1, Alarm::Due(..));
            let Some(latest) = self.at.iter().rev().find(is_due).map(|(at, _)| *at) else { return };
            let earlier = self.at.iter().rev().filter(is_due).find(|(at, _)| *at < latest);
            let Some(horizon) = earlier.map(|(at, _)| *at) else { return };
            let dropped: Vec<_> = self
                .at
                .range((latest, Alarm::Due(RunId::MIN, TimerKey::FirstTask))..)
                .take_while(|(at, alarm)| *at == latest && matches!(alarm, Alarm::Due(..)))
                .cloned()
                .collect();
            for (at, alarm) in dropped {
                self.remove(at, alarm);
            }
            // What lies beyond the horizon was never promised to be whole.
            if horizon < self.horizon {
                self.move_horizon(horizon);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::new(second, 0).unwrap()
    }

    const WINDOW: Duration = Duration::from_secs(60);

    fn begin(alarms: &mut Alarms) {
        assert_eq!(alarms.begin_read(at(0), WINDOW), Some(None));
    }

    /// The last row of a full page.
    fn last(second: i64) -> DueKey {
        DueKey { due: at(second), run: RunId::MIN, timer: Bytes::from_static(b"last") }
    }

    fn timer(name: &str) -> TimerKey {
        TimerKey::Timer(name.into())
    }

    fn due(alarms: &mut Alarms, now: i64) -> Vec<String> {
        std::iter::from_fn(|| alarms.pop(at(now)))
            .map(|(_, alarm)| match alarm {
                Alarm::Due(_, TimerKey::Timer(timer)) => timer.to_string(),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn far_timers_stay_in_the_store_until_they_are_near() {
        let mut alarms = Alarms::new(10);
        begin(&mut alarms);
        alarms.end_read(vec![(at(5), RunId::MIN, timer("a"))], None);
        alarms.set_due(at(60), RunId::MIN, timer("near"));
        alarms.set_due(at(61), RunId::MIN, timer("far"));
        assert_eq!(due(&mut alarms, 100), ["a", "near"]);
    }

    #[test]
    fn a_timer_written_while_a_read_is_under_way_is_not_missed() {
        let mut alarms = Alarms::new(10);
        begin(&mut alarms);
        alarms.set_due(at(30), RunId::MIN, timer("new"));
        alarms.end_read(Vec::new(), None);
        assert_eq!(due(&mut alarms, 30), ["new"]);
    }

    /// A shard that closes lets nothing fall due any more, and must not read for ever.
    #[test]
    fn nothing_is_read_while_what_is_overdue_leaves_no_room() {
        let mut alarms = Alarms::new(2);
        begin(&mut alarms);
        let page = vec![(at(1), RunId::MIN, timer("a")), (at(2), RunId::MIN, timer("b"))];
        alarms.end_read(page, Some(last(2)));
        assert_eq!(alarms.begin_read(at(100), WINDOW), None);
        assert_eq!(due(&mut alarms, 100), ["a", "b"]);
        assert!(alarms.begin_read(at(100), WINDOW).is_some());
    }

    #[test]
    fn a_full_page_moves_the_horizon_only_as_far_as_it_goes() {
        let mut alarms = Alarms::new(10);
        begin(&mut alarms);
        alarms.end_read(vec![(at(5), RunId::MIN, timer("a"))], Some(last(5)));
        assert_eq!(alarms.begin_read(at(5), WINDOW), Some(Some(last(5))));
    }

    #[test]
    fn a_full_page_of_what_cannot_be_read_moves_the_horizon_no_further() {
        let mut alarms = Alarms::new(10);
        begin(&mut alarms);
        alarms.end_read(Vec::new(), Some(last(5)));
        assert_eq!(alarms.begin_read(at(5), WINDOW), Some(Some(last(5))));
    }

    #[test]
    fn the_next_read_comes_early_while_there_is_room() {
        let mut alarms = Alarms::new(2);
        begin(&mut alarms);
        alarms.end_read(Vec::new(), None);
        assert_eq!(alarms.read_at(WINDOW), Some(at(30)));
        alarms.set_due(at(50), RunId::MIN, timer("a"));
        assert_eq!(alarms.read_at(WINDOW), Some(at(60)));
        assert!(alarms.begin_read(at(59), WINDOW).is_none());
    }

    #[test]
    fn over_the_bound_the_latest_leave_memory() {
        let mut alarms = Alarms::new(2);
        begin(&mut alarms);
        alarms.end_read(Vec::new(), None);
        for (second, name) in [(9, "c"), (3, "a"), (9, "d"), (2, "b")] {
            alarms.set_due(at(second), RunId::MIN, timer(name));
        }
        assert_eq!(alarms.read_at(WINDOW), Some(at(3)));
        assert_eq!(due(&mut alarms, 100), ["b", "a"]);
    }

    #[test]
    fn what_is_beyond_the_horizon_does_not_move_it() {
        let mut alarms = Alarms::new(2);
        begin(&mut alarms);
        alarms.end_read(Vec::new(), None);
        for (second, name) in [(70, "a"), (80, "b"), (90, "c")] {
            alarms.set(at(second), Alarm::Due(RunId::MIN, timer(name)));
        }
        alarms.set_due(at(50), RunId::MIN, timer("near"));
        assert_eq!(alarms.horizon, at(60));
    }
}
