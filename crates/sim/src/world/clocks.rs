//! Wall clocks. Each node has its own, which may be skewed and is stepped forwards and back, by up to
//! hours. Clients share one that shows the true time. At rest, all clocks skip time together.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use abide_core::{
    codec,
    event::{Body, Event as HistoryEvent, Fact},
    ids::{EventNumber, ShardId, WorkflowKey},
    note::{Note, Record},
    time::Timestamp,
};
use abide_store::{Batch, Write};

use super::{Event, World, nodes::NodeId, slots::SlotId};
use crate::{
    checks::{Check, Checked, Violation},
    rng::Rng,
    schedule::{MILLIS, Micros, SECOND},
};

/// Initial time of the true clock.
const EPOCH_MILLIS: u64 = 1_800_000_000_000;

/// Largest step of a clock.
const STEP_MAX: Micros = 3 * 3600 * SECOND;

/// Largest difference between the clock of a node and the true one once faults are over.
const SKEW_AT_REST: Micros = 2 * SECOND;

/// How soon after the faults the clocks of nodes are corrected.
const CORRECTED_WITHIN: Micros = 3 * SECOND;

/// A clock that goes back by this much was set: shards drop what they have computed from it.
const SET_BACK: Duration = Duration::from_secs(1);

/// Upper bound for the messages during one commit.
const MOMENTS_MAX: usize = 2000;

/// How late a timer may fire without faults: drivers notice within a second that the clock was set,
/// and a run may have to be loaded first.
const LATE: Micros = 3 * SECOND;

/// The clocks of a node. They outlive its processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeClocks {
    /// Speed of the monotonic clock in thousandths, and what it shows at the start.
    speed: u64,
    start: Micros,
    /// Difference between the wall clock and the true one.
    ahead: i64,
}

impl NodeClocks {
    /// Draws the clocks of a node: most agree, a few are hours off.
    pub(super) fn draw(rng: &mut Rng, skewed: bool) -> Self {
        let (speed, start) = (rng.between(960, 1040), rng.below(1_000_000 * MILLIS));
        let most = match rng.weighted(&[50, 30, 15, 5]) {
            _ if !skewed => 0,
            0 => 0,
            1 => 500 * MILLIS,
            2 => 30 * SECOND,
            _ => STEP_MAX,
        };
        Self { speed, start, ahead: either_way(rng, most) }
    }

    pub(super) fn monotonic(&self, now: Micros) -> Duration {
        Duration::from_micros(self.start + now * self.speed / 1000)
    }

    /// When the monotonic clock will show this.
    pub(super) fn when(&self, monotonic: Duration) -> Micros {
        let micros = Micros::try_from(monotonic.as_micros()).unwrap_or(Micros::MAX);
        (micros.saturating_sub(self.start).saturating_mul(1000)).div_ceil(self.speed)
    }
}

/// A number up to `most`, with either sign.
fn either_way(rng: &mut Rng, most: Micros) -> i64 {
    let drawn = signed(rng.between(0, 2 * most));
    drawn - signed(most)
}

fn signed(micros: Micros) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

impl World {
    /// The true time.
    pub(super) fn clock(&self) -> Timestamp {
        showing(self.now + self.skipped, 0)
    }

    /// What the clock of a node shows.
    pub(super) fn clock_of(&self, node: NodeId) -> Timestamp {
        showing(self.now + self.skipped, self.nodes[node].clocks.ahead)
    }

    /// What the node that serves a workflow believes the time to be.
    pub(super) fn clock_for(&self, workflow: &WorkflowKey) -> Timestamp {
        self.serving_node(workflow.slot().shard())
            .map_or_else(|| self.clock(), |node| self.clock_of(node))
    }

    fn serving_node(&self, shard: ShardId) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.shards.contains_key(&shard))
    }

    /// When the true clock will show this, unless time is skipped.
    pub(super) fn when(&self, clock: Timestamp) -> Micros {
        since_epoch(clock, 0).saturating_sub(self.skipped)
    }

    /// When the clock of a node will show this, unless it is set.
    pub(super) fn when_at(&self, node: NodeId, clock: Timestamp) -> Micros {
        since_epoch(clock, self.nodes[node].clocks.ahead).saturating_sub(self.skipped)
    }

    /// When the clock of the node that serves a workflow will show this, unless it is set.
    pub(super) fn when_for(&self, workflow: &WorkflowKey, clock: Timestamp) -> Micros {
        match self.serving_node(workflow.slot().shard()) {
            Some(node) => self.when_at(node, clock),
            None => self.when(clock),
        }
    }

    /// Since when the clock of a node shows at least this, not counting the first while after the
    /// faults.
    fn due_since(&self, node: NodeId, clock: Timestamp) -> Option<Micros> {
        let (calm_since, _) = self.skips.first()?;
        let shown = since_epoch(clock, self.nodes[node].clocks.ahead);
        let ends = self.skips.iter().skip(1).map(|(at, _)| *at).chain([Micros::MAX]);
        let due = self.skips.iter().zip(ends).find_map(|((at, skipped), end)| {
            let due = shown.saturating_sub(*skipped).max(*at);
            (due < end).then_some(due)
        });
        due.map(|due| due.max(calm_since + 2 * Self::longest_delay()))
    }

    pub(super) fn look_at_clock(&mut self, node: NodeId) -> Timestamp {
        let clock = self.clock_of(node);
        self.ledger.latest = self.ledger.latest.max(clock);
        clock
    }

    /// Steps the clock of one node, or sometimes those of all.
    pub(super) fn step_clocks(&mut self, forwards: bool) {
        let size = match (forwards, self.rng.weighted(&[6, 1, 1])) {
            (true, 0) => self.rng.between(SECOND, 30 * SECOND),
            (false, 0) => self.rng.between(MILLIS, 2 * SECOND),
            (_, 1) => self.rng.between(2 * SECOND, 120 * SECOND),
            _ => self.rng.between(120 * SECOND, STEP_MAX),
        };
        let step = if forwards { signed(size) } else { -signed(size) };
        if self.rng.chance(250) {
            return (0..self.nodes.len()).for_each(|node| self.step_clock(node, step));
        }
        let node = self.rng.index(self.nodes.len());
        self.step_clock(node, step);
    }

    fn step_clock(&mut self, node: NodeId, by: i64) {
        self.trace
            .note(None, || format!("{:>12} the clock of node {node} steps by {by} µs", self.now));
        self.nodes[node].clocks.ahead += by;
        let slots = self.slots.iter().filter(|(_, slot)| slot.node == node);
        let slots: Vec<_> = slots.map(|(id, _)| *id).collect();
        slots.into_iter().for_each(|slot| self.tick_soon(slot));
    }

    /// Faults are over: plans when each clock is corrected.
    pub(super) fn plan_corrections(&mut self) {
        self.skips.push((self.now, self.skipped));
        for node in 0..self.nodes.len() {
            let later = self.rng.below(CORRECTED_WITHIN);
            self.plan_in(later, Event::CorrectClock(node));
        }
    }

    /// The clock of a node is set to about the true time.
    pub(super) fn correct_clock(&mut self, node: NodeId) {
        let most = if self.leased() { SKEW_AT_REST } else { 0 };
        let ahead = either_way(&mut self.rng, most);
        self.step_clock(node, ahead - self.nodes[node].clocks.ahead);
    }

    /// All clocks skip some time in which nothing happens.
    pub(super) fn skip(&mut self, micros: Micros) {
        self.skipped += micros;
        self.skips.push((self.now, self.skipped));
        let slots: Vec<_> = self.slots.keys().copied().collect();
        slots.into_iter().for_each(|slot| self.tick_soon(slot));
    }

    /// What a shard writes fits the clock of its node: a run starts at a time that the clock showed,
    /// whatever it showed before it was set; later events have such a time or that of the event
    /// before; and no timer fires before its time has come.
    pub(super) fn times_are_true(&self, id: SlotId, batch: &Batch) -> Checked {
        let Some(slot) = self.slots.get(&id) else { return Ok(()) };
        let mut last = BTreeMap::new();
        let mut copied = BTreeMap::new();
        for write in &batch.writes {
            let Write::AppendLog(row) = write else { continue };
            let encoded = codec::Row { events: row.events.clone(), notes: row.notes.clone() };
            let records = codec::decode_row(&encoded).unwrap_or_default();
            let run = self.ledger.stories.get(&row.run).map(|story| &story.run);
            // What a former owner writes is refused, and need not fit.
            if run.is_some_and(|run| row.sequence <= run.log_rows) {
                continue;
            }
            // What a reset copies was judged when it was written.
            copied.extend(records.first().and_then(copied_by).map(|events| (row.run, events)));
            if copied.get(&row.run).is_some_and(|copied| row.first_event <= *copied) {
                last.extend(records.last().and_then(time_of).map(|time| (row.run, time)));
                continue;
            }
            let known = run.map_or(Timestamp::EPOCH, |run| run.last_time);
            let buffer = run.map_or(&[][..], |run| &run.buffer);
            let last = last.entry(row.run).or_insert(known);
            slot.moments.fit(last, buffer, &records).map_err(|(check, what)| {
                Violation::of(check, row.run, format!("{what}; node {} wrote it", slot.node))
            })?;
        }
        Ok(())
    }

    /// Remembers since when due times are in the index.
    pub(super) fn note_due_rows(&mut self, batch: &Batch) {
        for write in &batch.writes {
            if let Write::PutDue(row) = write {
                self.indexed.insert((row.run, row.timer.clone()), self.now);
            }
        }
    }

    /// Without faults, a timer fires soon after its due time, by the clock of the node that has its
    /// shard.
    pub(super) fn timers_are_punctual(&self, id: SlotId) -> Checked {
        let Some(slot) = self.slots.get(&id) else { return Ok(()) };
        for (run, timer, fire_at) in &self.ledger.fired {
            let Some(due) = self.due_since(slot.node, *fire_at) else { continue };
            let Some(indexed) = self.indexed.get(&(*run, timer.clone())) else { continue };
            let due = due.max(*indexed).max(slot.opened_at);
            if self.now > due + LATE {
                let what = format!("a timer due at {fire_at} fired {} µs late", self.now - due);
                return Err(Violation::of(Check::Punctual, *run, what));
            }
        }
        Ok(())
    }
}

/// How many events the reset copied that made the run which this record begins.
fn copied_by(record: &Record) -> Option<EventNumber> {
    match record {
        Record::Event(HistoryEvent {
            body: Body { fact: Fact::RunStarted(started), .. }, ..
        }) => started.reset.as_ref().map(|reset| reset.copied),
        Record::Event(_) | Record::Note(_) => None,
    }
}

const fn time_of(record: &Record) -> Option<Timestamp> {
    match record {
        Record::Event(event) => Some(event.time),
        Record::Note(_) => None,
    }
}

fn showing(since_epoch: Micros, ahead: i64) -> Timestamp {
    let micros = (EPOCH_MILLIS * MILLIS + since_epoch).saturating_add_signed(ahead);
    Timestamp::EPOCH.saturating_add(Duration::from_micros(micros))
}

/// How long after the start of the true clock a clock that is ahead by so much shows this.
fn since_epoch(clock: Timestamp, ahead: i64) -> Micros {
    let since = clock.saturating_since(Timestamp::from_unix_millis(EPOCH_MILLIS));
    let micros = u64::try_from(since.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
    micros.saturating_add_signed(-ahead)
}

/// What the clock showed at the last messages of a shard, since it was set back.
#[derive(Debug, Default)]
pub(super) struct Moments {
    shown: VecDeque<Timestamp>,
    latest: Timestamp,
}

impl Moments {
    pub(super) fn look(&mut self, clock: Timestamp) {
        let before = self.shown.back().copied().unwrap_or(Timestamp::EPOCH);
        if before.saturating_since(clock) >= SET_BACK {
            *self = Self::default();
        }
        if self.shown.len() >= MOMENTS_MAX {
            self.shown.pop_front();
        }
        self.shown.push_back(clock);
        self.latest = self.latest.max(clock);
    }

    fn saw(&self, moment: Timestamp) -> bool {
        self.shown.iter().rev().any(|shown| *shown == moment)
    }

    /// Checks the records that a shard adds to a run, whose last event so far has the time `last`.
    fn fit(
        &self,
        last: &mut Timestamp,
        buffer: &[Body],
        records: &[Record],
    ) -> Result<(), (Check, String)> {
        for record in records {
            match record {
                Record::Event(event) => self.event_fits(*last, buffer, event)?,
                Record::Note(Note::InputBuffered(body)) => self.in_time(&body.fact)?,
                Record::Note(_) => {}
            }
            if let Record::Event(event) = record {
                *last = event.time;
            }
        }
        Ok(())
    }

    fn event_fits(
        &self,
        last: Timestamp,
        buffer: &[Body],
        event: &HistoryEvent,
    ) -> Result<(), (Check, String)> {
        let (fact, time) = (&event.body.fact, event.time);
        let of_firing = matches!(fact, Fact::TimerFired(fired) if fired.fire_at == time);
        // A buffered firing was judged when it was buffered.
        if !buffer.iter().any(|body| body.fact == *fact) {
            self.in_time(fact)?;
        }
        if self.saw(time) {
            return Ok(());
        }
        match fact {
            Fact::RunStarted(_) => {
                Err((Check::Starts, format!("it started at {time}, which no clock showed then")))
            }
            _ if time == last || of_firing => Ok(()),
            _ => {
                let what = format!("{} at {time}, which no clock showed then", fact.name());
                Err((Check::Times, what))
            }
        }
    }

    /// A timer does not fire before the clock has shown its due time.
    fn in_time(&self, fact: &Fact) -> Result<(), (Check, String)> {
        match fact {
            Fact::TimerFired(fired) if fired.fire_at > self.latest => {
                let (timer, due, latest) = (&fired.timer, fired.fire_at, self.latest);
                Err((Check::Timers, format!("{timer}, due at {due}, fired at {latest}")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use abide_core::event::{SignalReceived, TimerFired};

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_unix_millis(seconds * 1000)
    }

    fn event(seconds: u64, fact: impl Into<Fact>) -> Record {
        Record::Event(HistoryEvent { number: 1, time: at(seconds), body: Body::new(fact.into()) })
    }

    fn firing(due: u64) -> TimerFired {
        TimerFired { timer: "t".into(), started: 1, fire_at: at(due) }
    }

    /// Checks a record that follows an event of second 20, after the clock has shown 30 and 40.
    fn judge(buffer: &[Body], record: Record) -> Option<Check> {
        let mut moments = Moments::default();
        [30, 40].into_iter().for_each(|second| moments.look(at(second)));
        moments.fit(&mut at(20), buffer, &[record]).err().map(|(check, _)| check)
    }

    #[test]
    fn what_is_written_fits_the_clock() {
        let signal = SignalReceived::default;
        assert_eq!(judge(&[], event(30, signal())), None);
        assert_eq!(judge(&[], event(20, signal())), None, "the clock was set back");
        assert_eq!(judge(&[], event(35, signal())), Some(Check::Times));
        assert_eq!(judge(&[], event(40, firing(35))), None);
        assert_eq!(judge(&[], event(40, firing(41))), Some(Check::Timers));
        let buffered = Body::new(firing(41));
        assert_eq!(
            judge(std::slice::from_ref(&buffered), event(41, firing(41))),
            None,
            "it had been due"
        );
        let buffers = Record::Note(Note::InputBuffered(buffered));
        assert_eq!(judge(&[], buffers), Some(Check::Timers));
    }

    #[test]
    fn a_clock_that_is_set_back_no_longer_counts_what_it_showed() {
        let mut moments = Moments::default();
        [40, 30].into_iter().for_each(|second| moments.look(at(second)));
        assert!(!moments.saw(at(40)) && moments.saw(at(30)));
        assert!(moments.in_time(&firing(35).into()).is_err());
    }

    #[test]
    fn a_clock_shows_what_it_is_asked_for() {
        for ahead in [0, 5_000_000, -7_000_000] {
            assert_eq!(since_epoch(showing(9_000_000, ahead), ahead), 9_000_000);
        }
    }
}
