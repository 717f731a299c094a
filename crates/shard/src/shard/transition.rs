//! One decision and everything that follows from it: the log row, changed rows, alarms, offers,
//! effects, answers. All writes go into one batch; outputs wait for that batch.

use abide_core::{
    codec,
    event::Fact,
    failure::Failure,
    ids::{RunId, UpdateId},
    note::Record,
    operation::{CallError, Ticket},
    run::{self, Decision, Input, Refusal, Reply, StartRun, TimerKey, Touch},
    time::Timestamp,
};
use abide_store::{
    Write,
    rows::{LogRow, SnapshotRow},
};

use super::{Shard, Todo};
use crate::{
    alarm::Alarm,
    cache::Entry,
    rows::{self, Row},
};

impl Shard {
    /// Decides an input and records the decision.
    pub(super) fn decide(&mut self, run: RunId, input: Input) -> Result<Reply, CallError> {
        let mut decision = self.judge(run, input)?;
        let reply = std::mem::replace(&mut decision.reply, Reply::Done);
        self.record(run, [decision]);
        Ok(reply)
    }

    /// The same as [`Self::decide`], for inputs without a caller.
    pub(super) fn decide_quietly(&mut self, run: RunId, input: Input) {
        // A refusal changes nothing, and no caller waits for it.
        drop(self.decide(run, input));
    }

    /// Decides an input without recording it. The decision must be recorded before the next
    /// message.
    pub(super) fn judge(&mut self, run: RunId, input: Input) -> Result<Decision, CallError> {
        if self.refusals.set_aside(run) {
            return Err(CallError::SetAside(run));
        }
        let context = Self::context(&self.moment, &self.limits);
        let entry = self.memory.cache.get(run).ok_or(CallError::NotFound)?;
        let decision = run::decide(&mut entry.run, &context, input)?;
        self.advance_entropy();
        Ok(decision)
    }

    /// Begins a run, which becomes the current run of its workflow.
    pub(super) fn begin(&mut self, start: StartRun) {
        let context = Self::context(&self.moment, &self.limits);
        let (run, decision) = run::start(&context, start);
        self.advance_entropy();
        self.begin_as_current(Entry::begun(run), decision);
    }

    /// Records the first decision of a run, which becomes the current run of its workflow.
    pub(super) fn begin_as_current(&mut self, mut entry: Entry, decision: Decision) {
        entry.run.volatile.watched_since = self.opened_at;
        let (id, workflow) = (entry.run.id, entry.run.workflow.clone());
        self.memory.cache.insert(entry);
        if let Some(search) = self.memory.heads.get_mut(&workflow) {
            search.stale = true;
        }
        self.memory.cache.set_head(workflow, id);
        self.record(id, [decision]);
    }

    /// Records decisions of one run as one log row, with everything that follows.
    pub(super) fn record(&mut self, run: RunId, decisions: impl IntoIterator<Item = Decision>) {
        let mut records = Vec::new();
        let mut rejected = Vec::new();
        let mut successor = None;
        for decision in decisions {
            records.extend(decision.records);
            rejected.extend(decision.rejected);
            successor = successor.or(decision.successor);
        }
        let notes = records.iter().skip_while(|record| matches!(record, Record::Event(_)));
        debug_assert!(
            notes.clone().all(|record| matches!(record, Record::Note(_))),
            "within a row events fold before notes: only the first decision may have events"
        );
        let touched = self.write(run, &records);
        if let Some(start) = successor {
            self.begin(*start);
        }
        self.follow_up(run, &touched);
        self.tell_waiters(run, &rejected);
        self.wake_queries(run);
        self.wake_busy(run);
    }

    fn write(&mut self, run: RunId, records: &[Record]) -> Vec<Touch> {
        let Some(entry) = self.memory.cache.get(run) else { return Vec::new() };
        let mut writes = Vec::new();
        let mut logged = 0;
        if !records.is_empty() {
            let row = log_row(entry, records);
            logged = row.events.len() + row.notes.len();
            writes.push(Write::AppendLog(row));
        }
        let mut touched = entry.run.take_touched();
        if !records.is_empty() && std::mem::take(&mut entry.row_outdated) {
            entry.rows.remove(&Touch::Run);
            touched.retain(|part| *part != Touch::Run);
            touched.push(Touch::Run);
        }
        let mut due_before = Vec::new();
        let mut due_after = Vec::new();
        for part in &touched {
            let after = rows::project(&entry.run, part);
            let before = entry.rows.get(part).map_or(&[][..], Vec::as_slice);
            writes.extend(rows::changes(before, &after));
            due_before.extend(before.iter().filter_map(due_entry));
            due_after.extend(after.iter().filter_map(due_entry));
            for row in &after {
                if let Row::Task(row) = row {
                    self.memory.held.see(row);
                }
            }
            if after.is_empty() {
                entry.rows.remove(part);
            } else {
                entry.rows.insert(part.clone(), after);
            }
        }
        if entry.snapshot_is_old(&self.limits) {
            entry.snapshot_rows = entry.run.log_rows;
            let (sequence, state) = (entry.run.log_rows, entry.run.to_snapshot());
            writes.push(Write::PutSnapshot(SnapshotRow { run, sequence, state }));
        }
        if !writes.is_empty() {
            entry.written(self.memory.pipeline.push(Some(run), writes));
        }
        if let Some((at, start)) = entry.take_stale_turn_alarm() {
            self.memory.alarms.clear(at, Alarm::Turn(run, start));
        }
        self.memory.cache.wrote(run, logged);
        for (due, key) in due_before {
            self.memory.alarms.clear_due(due, run, key);
        }
        for (due, key) in due_after {
            self.memory.alarms.set_due(due, run, key);
        }
        touched
    }

    /// Offers work, and tracks attempts and effects.
    fn follow_up(&mut self, run: RunId, touched: &[Touch]) {
        for part in touched {
            match part {
                Touch::Activity(scheduled) => {
                    self.track_attempt(run, *scheduled);
                    self.offer_activity(run, *scheduled);
                }
                Touch::Effect(number) => self.track_effect(run, *number),
                Touch::Run
                | Touch::Deadlines
                | Touch::Task
                | Touch::Timer(_)
                | Touch::Wait(_)
                | Touch::Schedule => {}
            }
        }
        let updates_wait = self
            .memory
            .cache
            .peek(run)
            .is_some_and(|entry| !entry.run.volatile.admitted.is_empty());
        if touched.contains(&Touch::Task) || updates_wait {
            self.offer_task(run);
        }
    }

    fn tell_waiters(&mut self, run: RunId, rejected: &[(UpdateId, Failure)]) {
        if self.memory.waiters.any(run) {
            self.check_waiters(run, rejected);
        }
    }

    /// Parks work until the run's workflow task ends; too many requests are refused.
    pub(super) fn park_busy(&mut self, run: RunId, todo: Todo) {
        let parked = self.memory.busy.entry(run).or_default();
        match &todo {
            Todo::Request(ticket, _) if parked.len() >= self.limits.waiting_requests => {
                return self.refuse(*ticket, CallError::Overloaded);
            }
            Todo::Request(ticket, _) => drop(self.memory.parked.insert(*ticket, run)),
            _ => {}
        }
        parked.push_back(todo);
    }

    /// The caller of a parked request has left. The request is dropped, because its bytes are no longer
    /// accounted to anyone.
    pub(super) fn unpark(&mut self, ticket: Ticket) {
        let run = self.memory.parked.remove(&ticket);
        if let Some(parked) = run.and_then(|run| self.memory.busy.get_mut(&run)) {
            parked.retain(|todo| !matches!(todo, Todo::Request(of, _) if *of == ticket));
        }
    }

    /// Resumes parked work if the run has no started workflow task.
    fn wake_busy(&mut self, run: RunId) {
        let started =
            self.memory.cache.peek(run).is_some_and(|entry| entry.run.volatile.turn.is_some());
        if !started && let Some(parked) = self.memory.busy.remove(&run) {
            for todo in &parked {
                if let Todo::Request(ticket, _) = todo {
                    self.memory.parked.remove(ticket);
                }
            }
            self.memory.woken.extend(parked.into_iter().map(|todo| (run, todo)));
        }
    }

    /// Whether the run refused an input because it is busy, so that the input waits; any other
    /// refusal is final.
    pub(super) fn busy(error: &CallError) -> bool {
        matches!(error, CallError::Refused(Refusal::Busy))
    }
}

fn log_row(entry: &mut Entry, records: &[Record]) -> LogRow {
    let encoded = codec::encode_row(records);
    entry.run.logged(encoded.events.len());
    let first = records.iter().find_map(|record| match record {
        Record::Event(event) => Some(event.number),
        Record::Note(_) => None,
    });
    let completed = records.iter().any(|record| match record {
        Record::Event(event) => matches!(event.body.fact, Fact::TaskCompleted(_)),
        Record::Note(_) => false,
    });
    if !encoded.events.is_empty() {
        entry.remember(encoded.events.clone(), completed);
    }
    LogRow {
        run: entry.run.id,
        sequence: entry.run.log_rows,
        first_event: first.unwrap_or(entry.run.last_event + 1),
        events: encoded.events,
        notes: encoded.notes,
    }
}

/// The due time and timer of a row, if it is a due row.
pub(super) fn due_entry(row: &Row) -> Option<(Timestamp, TimerKey)> {
    let Row::Due(row) = row else { return None };
    Some((row.due, TimerKey::from_bytes(&row.timer)?))
}
