//! Alarms: what falls due is passed to its run, which decides. The due index is read ahead in
//! pages.

use std::collections::VecDeque;

use abide_core::{
    ids::RunId,
    run::{Input, Reply, TimerKey},
    time::Timestamp,
};
use abide_store::{
    Write,
    rows::{DueKey, DueRow, Swept},
};

use super::{Reading, Shard, Todo, open::State, transition::due_entry};
use crate::{
    alarm::Alarm,
    message::{Fetch, Notice, Output},
    rows::Row,
};

impl Shard {
    pub(super) fn tick(&mut self) {
        while let Some((at, alarm)) = self.memory.alarms.pop(self.now()) {
            match alarm {
                Alarm::Reopen => self.open(),
                Alarm::Due(run, key) => self.with_run(run, Todo::Due(at, key)),
                Alarm::CheckAgain(run, key) => self.with_run(run, Todo::CheckAgain(key)),
                Alarm::Turn(run, start) => {
                    if self.turn(run).is_some() {
                        self.with_run(run, Todo::TimeOutTask(start));
                    }
                }
                Alarm::TaskReady(run) => self.with_run(run, Todo::Reoffer),
                Alarm::Grace(run, scheduled) => self.grace_over(run, scheduled, at),
                Alarm::Await(run, scheduled) => self.presentation_late(run, scheduled),
                Alarm::Resend => self.resend(),
                Alarm::Forget(source, number, sweeps) => {
                    self.forget_effect(source, number, sweeps);
                }
                Alarm::Sweep => self.sweep(),
                Alarm::Rest => self.rest(),
            }
        }
    }

    /// Reads the next part of the due index before it is needed.
    pub(super) fn look_ahead(&mut self) {
        let window = self.limits.near_window;
        let Some(after) = self.memory.alarms.begin_read(self.now(), window) else { return };
        let until = self.memory.alarms.reading_until().unwrap_or_default();
        // The read does not see uncommitted due entries, so they are added here.
        let pipeline = &self.memory.pipeline;
        let uncommitted: Vec<_> = self
            .memory
            .cache
            .iter()
            .filter(|(_, entry)| !pipeline.durable(entry.written_in))
            .flat_map(|(run, entry)| entry.rows.values().flatten().map(|row| (*run, row)))
            .filter_map(|(run, row)| Some((run, due_entry(row)?)))
            .collect();
        for (run, (due, key)) in uncommitted {
            self.memory.alarms.set_due(due, run, key);
        }
        self.fetch(Reading::Due, Fetch::Due(after, until, self.due_page()));
    }

    fn due_page(&self) -> usize {
        self.limits.page_rows.min(self.limits.near_timers).max(1)
    }

    pub(super) fn due_read(&mut self, rows: Vec<DueRow>) {
        let full = rows.len() >= self.due_page();
        let last = rows.last().filter(|_| full).map(DueRow::key);
        let mut entries = Vec::with_capacity(rows.len());
        for row in rows {
            match TimerKey::from_bytes(&row.timer) {
                Some(timer) => entries.push((row.due, row.run, timer)),
                // The row stays in the store for a version that can decode it.
                None => {
                    let reason = format!("what is due at {}", row.due);
                    self.emit(Output::Notice(Notice::Unreadable(row.run, reason)));
                }
            }
        }
        self.memory.alarms.end_read(entries, last);
    }

    /// Handles a due entry, which is only a hint: the run acts only on what is really due.
    pub(super) fn fall_due(&mut self, run: RunId, at: Timestamp, timer: TimerKey) {
        match self.decide(run, Input::Due { timer: timer.clone() }) {
            Ok(Reply::NotDue) => self.correct_hint(run, at, timer),
            Err(error) if Self::busy(&error) => self.park_busy(run, Todo::Due(at, timer)),
            Ok(_) => self.fired += 1,
            Err(_) => {}
        }
    }

    /// Handles a due time that existed only in memory.
    pub(super) fn look_again(&mut self, run: RunId, timer: TimerKey) {
        match self.decide(run, Input::Due { timer: timer.clone() }) {
            Ok(Reply::NotDue) => {
                let again =
                    self.memory.cache.peek(run).and_then(|entry| entry.run.next_check_at(&timer));
                if let Some(again) = again {
                    self.memory.alarms.set(again, Alarm::CheckAgain(run, timer));
                }
            }
            Err(error) if Self::busy(&error) => self.park_busy(run, Todo::CheckAgain(timer)),
            Ok(_) => self.fired += 1,
            Err(_) => {}
        }
    }

    /// Deletes exactly the wrong hint, and sets an alarm for when the timer is really due.
    fn correct_hint(&mut self, run: RunId, at: Timestamp, timer: TimerKey) {
        let Some(entry) = self.memory.cache.peek(run) else { return };
        if let Some(again) = entry.run.next_check_at(&timer) {
            self.memory.alarms.set(again, Alarm::CheckAgain(run, timer.clone()));
        }
        let key = DueKey { due: at, run, timer: timer.to_bytes() };
        let known = |row: &Row| matches!(row, Row::Due(row) if row.key() == key);
        if !entry.rows.values().flatten().any(known) {
            self.memory.pipeline.push(None, vec![Write::DeleteDue(key)]);
        }
    }

    fn sweep(&mut self) {
        if self.state != State::Open {
            return;
        }
        let next = self.now().saturating_add(self.limits.sweep_interval);
        self.memory.alarms.set(next, Alarm::Sweep);
        self.fetch(Reading::Stranded, Fetch::Stranded(self.sweep_after, self.limits.swept_runs));
        if let Some(before) = self.expiry.sweep(self.now(), &self.limits) {
            self.memory.pipeline.push(None, vec![Write::DeleteInboxBefore(before)]);
        }
    }

    pub(super) fn stranded_read(&mut self, mut swept: Swept) {
        // If many runs have lost their rows, they are repaired a page at a time.
        if swept.stranded.len() > self.limits.page_rows {
            swept.stranded.truncate(self.limits.page_rows);
            swept.next = swept.stranded.last().copied();
        }
        let from = std::mem::replace(&mut self.sweep_after, swept.next);
        self.memory.quiet.add_page(from, swept.next, &swept.quiet);
        for run in swept.stranded {
            self.with_run(run, Todo::EnsureRows);
        }
        // Whether a run lacks its task row, only its log tells: a few are read at a time.
        for _ in 0..self.limits.checked_runs {
            let Some(run) = self.memory.quiet.runs.pop_front() else { break };
            self.with_run(run, Todo::CheckTask);
        }
    }
}

/// Open runs without a task row that the sweeper has yet to compare with their logs.
#[derive(Debug, Default)]
pub(super) struct QuietRuns {
    runs: VecDeque<RunId>,
    /// All up to this run were queued since the search began; none if it begins again.
    after: Option<RunId>,
}

impl QuietRuns {
    /// Queues the quiet runs of a page of the sweep, which begins after `from` and ends with `next`. A
    /// page behind ones that were not queued waits for its turn, so that no run is left out.
    fn add_page(&mut self, from: Option<RunId>, next: Option<RunId>, quiet: &[RunId]) {
        if self.runs.is_empty() && from <= self.after {
            let after = std::mem::replace(&mut self.after, next);
            self.runs = quiet.iter().copied().filter(|run| Some(*run) > after).collect();
        }
    }
}
