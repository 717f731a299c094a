//! Rebuilds the rows of a run from its log. Missing rows are written. Of rows that should not exist
//! only waits are deleted: a wrong due time or task is detected when it falls due or is matched.

use abide_core::{
    ids::RunId,
    operation::Ticket,
    run::{Input, Task},
};
use abide_store::{Write, rows::WaitRow};

use super::{Reading, Shard, Todo};
use crate::{
    cache,
    message::{Fetch, Notice, Output},
    rows::Row,
};

/// A repair in progress, with the wait rows that the store has.
#[derive(Clone, Debug)]
pub(super) struct Repair {
    pub(super) ticket: Ticket,
    pub(super) identity: String,
    pub(super) waits: Vec<WaitRow>,
}

impl Shard {
    /// Reads the stored wait rows of the run, to compare them.
    pub(super) fn begin_repair(&mut self, run: RunId, ticket: Ticket, identity: String) {
        let repair = Repair { ticket, identity, waits: Vec::new() };
        // Twice as many as there should be at most; the next repair removes the rest.
        let limit = self.limits.pending_timers.saturating_mul(2);
        self.fetch(Reading::WaitsOf(run, Box::new(repair)), Fetch::WaitsOf(run, limit));
    }

    pub(super) fn waits_read(&mut self, run: RunId, mut repair: Repair, waits: Vec<WaitRow>) {
        repair.waits = waits;
        self.with_run(run, Todo::Repair(Box::new(repair)));
    }

    pub(super) fn repair(&mut self, run: RunId, repair: Repair) {
        let Repair { ticket, identity, waits } = repair;
        if self.refusals.forgive(run) {
            self.emit(Output::Notice(Notice::Repaired(run)));
        }
        let reply = self.decide(run, Input::Repair { identity });
        self.ensure_rows(run);
        self.remove_waits(run, &waits);
        self.operated(run, ticket, reply, None);
    }

    /// Deletes wait rows that the run should not have. The rows read may be stale, but rows that
    /// the run has written since are among those that it should have.
    fn remove_waits(&mut self, run: RunId, listed: &[WaitRow]) {
        let Some(entry) = self.memory.cache.get(run) else { return };
        let wanted = |listed: &WaitRow| {
            let mut rows = entry.rows.values().flatten();
            rows.any(|row| matches!(row, Row::Wait(row) if row.wait == listed.wait))
        };
        let left = listed.iter().filter(|row| !wanted(row));
        let deletes: Vec<_> =
            left.map(|row| Write::DeleteWait { run, wait: row.wait.clone() }).collect();
        if !deletes.is_empty() {
            entry.written_in = self.memory.pipeline.push(Some(run), deletes);
        }
    }

    /// The store had no task row of the run when the sweeper looked.
    pub(super) fn check_task(&mut self, run: RunId) {
        let entry = self.memory.cache.peek(run);
        let task = |row: &Row| matches!(row, Row::Task(_));
        if entry.is_some_and(|entry| entry.rows.values().flatten().any(task)) {
            self.ensure_rows(run);
        }
    }

    /// Writes every row that the run should have: rows are an index of the log and can be rebuilt.
    pub(super) fn ensure_rows(&mut self, run: RunId) {
        let Some(entry) = self.memory.cache.get(run) else { return };
        entry.rows = cache::project_all(&entry.run);
        // A run that waits for a child or an update needs only its run row.
        let of_the_list = |row: &Row| matches!(row, Row::Run(_) | Row::Attribute(_));
        if entry.rows.values().flatten().all(of_the_list) {
            return;
        }
        let puts: Vec<_> = entry.rows.values().flatten().cloned().map(Row::put).collect();
        let due: Vec<_> = entry.run.due_keys();
        let waiting = entry.run.task != Task::Idle;
        let activities: Vec<_> = entry.run.activities.keys().copied().collect();
        let effects: Vec<_> = entry.run.outbox.keys().copied().collect();
        entry.written_in = self.memory.pipeline.push(Some(run), puts);
        for key in due {
            if let Some(at) = self.memory.cache.peek(run).and_then(|entry| entry.run.due(&key)) {
                self.memory.alarms.set_due(at, run, key);
            }
        }
        if waiting {
            self.offer_task(run);
        }
        for scheduled in activities {
            self.offer_activity(run, scheduled);
        }
        for number in effects {
            self.track_effect(run, number);
        }
    }
}
