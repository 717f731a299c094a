//! Bugs in what is written and replied about waits and their deadlines.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    command::{Ask, Command},
    event::{Body, Fact, MarkerKind, TimerFired},
    ids::{RunId, TimerId},
    list::WaitRow,
    note::Record,
    payload::Payload,
    time::Timestamp,
};
use abide_store::{Batch, Write};
use bytes::Bytes;

use super::{Bug, Saboteur};

/// Original deadlines of timers and waits.
#[derive(Debug)]
pub(super) struct Deadlines {
    timers: BTreeMap<(RunId, TimerId), Timestamp>,
    waits: BTreeMap<(RunId, Bytes), Timestamp>,
}

impl Deadlines {
    pub(super) const fn new() -> Self {
        Self { timers: BTreeMap::new(), waits: BTreeMap::new() }
    }

    /// Makes a timer fire at its original deadline.
    pub(super) fn alter(&mut self, run: RunId, record: &mut Record) {
        let Record::Event(event) = record else { return };
        match &event.body.fact {
            Fact::TimerStarted(started) => {
                let spec = &started.spec;
                self.timers.insert((run, spec.timer.clone()), spec.fire_at);
            }
            Fact::TimerFired(fired) => {
                if let Some(first) = self.timers.get(&(run, fired.timer.clone())) {
                    let fired = TimerFired { fire_at: *first, ..fired.clone() };
                    event.body = Body::new(fired);
                }
            }
            _ => {}
        }
    }
}

impl Saboteur {
    /// Timers that get another due row in this batch.
    pub(super) fn moved_timers(&self, batch: &Batch) -> BTreeSet<(RunId, Bytes)> {
        let put = |write: &Write| match write {
            Write::PutDue(row) => Some((row.run, row.timer.clone())),
            _ => None,
        };
        let wanted = self.bug == Some(Bug::OldDueRow);
        batch.writes.iter().filter(|_| wanted).filter_map(put).collect()
    }

    /// Whether the row of a rescheduled wait is not written.
    pub(super) fn keeps_old_end(&mut self, row: &WaitRow) -> bool {
        if self.bug != Some(Bug::WaitRowNotMoved) {
            return false;
        }
        let place = (row.run, row.wait.clone());
        let before = self.deadlines.waits.insert(place, row.until);
        before.is_some_and(|before| before != row.until)
    }

    /// Corrupts what a worker reports about its waits.
    pub(super) fn corrupt_waits(&mut self, commands: &mut Vec<Command>) {
        for command in commands.iter_mut() {
            match &command.ask {
                Ask::TimeOutWait(wait) if self.strikes(Bug::DeadlineIgnored) => {
                    command.ask = Ask::SatisfyWait(wait.clone());
                }
                Ask::SatisfyWait(wait) if self.strikes(Bug::DeadlineTooEager) => {
                    command.ask = Ask::TimeOutWait(wait.clone());
                }
                _ => {}
            }
        }
        if self.bug == Some(Bug::TimerLeftBehind) {
            let satisfies = commands.iter().any(|it| matches!(it.ask, Ask::SatisfyWait(_)));
            commands.retain(|it| !(satisfies && matches!(it.ask, Ask::CancelTimer(_))));
        }
        for command in commands.iter_mut() {
            if let Ask::RecordMarker(marker) = &mut command.ask
                && marker.kind == MarkerKind::LocalActivity
                && self.strikes(Bug::LocalValueChanged)
                && let Some(value) = marker.details.get_mut("value")
            {
                *value = vec![Payload::new("changed")];
            }
        }
        if self.bug == Some(Bug::LostMarker) {
            let value = |ask: &Ask| matches!(ask, Ask::RecordMarker(marker) if marker.kind == MarkerKind::SideEffect);
            commands.retain(|command| !value(&command.ask));
        }
    }
}
