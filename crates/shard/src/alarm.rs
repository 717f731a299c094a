//! What a shard must do at a given time: the near part of the stored due index, and deadlines that
//! exist only in memory. Due entries in memory are bounded: the latest are evicted and read again
//! later.

use std::{collections::BTreeSet, time::Duration};

use abide_core::{
    ids::{EventNumber, RunId, StartId},
    run::TimerKey,
    time::Timestamp,
};
use abide_store::rows::DueKey;
use bytes::Bytes;

/// What to do when an alarm falls due.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// A due entry of a run.
    Due(RunId, TimerKey),
    /// A due time that exists only in memory: the stored one has passed but is not the real one,
    /// after a heartbeat for example.
    CheckAgain(RunId, TimerKey),
    /// A started workflow task has timed out.
    Turn(RunId, StartId),
    /// A delayed workflow task can be offered.
    TaskReady(RunId),
    /// The session grace for this attempt is over: it is lost unless its worker has presented it.
    Grace(RunId, EventNumber),
    /// The worker of this attempt is late to present it.
    Await(RunId, EventNumber),
    /// Send effects without an answer again.
    Resend,
    /// No duplicate of a confirmed effect can still be in flight: delete its inbox row. Source run,
    /// number, and the sweeps before the confirmation.
    Forget(RunId, u64, u64),
    /// Look for runs that no row would ever resume.
    Sweep,
    /// Evict a run that is too large to be cached, unless it is in use.
    Rest,
    /// Reopen the shard after a reset.
    Reopen,
}

/// Alarms in order of time.
#[derive(Debug)]
pub struct Alarms {
    at: BTreeSet<(Timestamp, Alarm)>,
    due_count: usize,
    due_max: usize,
    /// All due entries before this time are in memory.
    horizon: Timestamp,
    /// The next read of the due index starts after this key.
    cursor: Option<DueKey>,
    /// End time of the read of the due index that is in flight.
    reading: Option<Timestamp>,
}

impl Alarms {
    /// No alarms yet; at most `due_max` due entries are held in memory.
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

    /// Sets an alarm that exists only in memory.
    pub fn set(&mut self, at: Timestamp, alarm: Alarm) {
        self.insert(at, alarm);
    }

    /// Removes an alarm that exists only in memory.
    pub fn clear(&mut self, at: Timestamp, alarm: Alarm) {
        self.remove(at, alarm);
    }

    /// A due entry was written: held in memory if it is near, or if the read in flight may miss it.
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

    /// Begins a read of the due index if one is needed by `now`: the caller reads from after the
    /// returned key up to `now` plus `window`.
    pub fn begin_read(&mut self, now: Timestamp, window: Duration) -> Option<Option<DueKey>> {
        // Overdue alarms come first and make room: entries read before that would be evicted at
        // once.
        let overdue = self.next_at().is_some_and(|at| at <= now);
        if self.read_at(window)? > now || (overdue && self.crowded()) {
            return None;
        }
        self.reading = Some(now.saturating_add(window));
        Some(self.cursor.clone())
    }

    /// When the next read of the due index is needed: early while there is room, otherwise at the
    /// last moment.
    pub fn read_at(&self, window: Duration) -> Option<Timestamp> {
        if self.reading.is_some() || self.horizon.is_never() {
            return None;
        }
        if self.crowded() {
            return Some(self.horizon);
        }
        let margin = window / 2;
        let since_epoch = self.horizon.saturating_since(Timestamp::EPOCH);
        Some(Timestamp::EPOCH.saturating_add(since_epoch.saturating_sub(margin)))
    }

    /// Whether there is little room for more due entries.
    fn crowded(&self) -> bool {
        self.due_count * 2 >= self.due_max.max(2)
    }

    /// End time of the read in flight.
    pub fn reading_until(&self) -> Option<Timestamp> {
        self.reading
    }

    /// The read ended. `last` is the last key of a full page: entries after it are still unread.
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

    /// Removes and returns the earliest alarm that is due.
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

    /// Evicts the latest due entries over the bound, all of one timestamp together, so that
    /// everything before the new horizon is still in memory.
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
            // Entries beyond the horizon need not be complete.
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

    /// A closing shard processes no alarms, and must not read forever.
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
