//! Makes the rows of a run what its log says, whatever became of them. What is missing is put; of what
//! is there and should not be, only waits can be seen, since a wrong due time or task is found out when
//! its time comes.

use abide_core::{
    ids::RunId,
    operation::Ticket,
    run::{Input, Task},
};
use abide_store::{Write, rows::WaitRow};

use super::{Reading, Shard, Todo};
use crate::{cache, message::Fetch, rows::Row};

/// What an operator asks for, and what the store has of it.
#[derive(Clone, Debug)]
pub(super) struct Repair {
    pub(super) ticket: Ticket,
    pub(super) identity: String,
    pub(super) waits: Vec<WaitRow>,
}

impl Shard {
    /// Reads what is listed of the run, to compare it.
    pub(super) fn begin_repair(&mut self, run: RunId, ticket: Ticket, identity: String) {
        let repair = Repair { ticket, identity, waits: Vec::new() };
        // Twice as many as there can be: the rest is removed by the next repair.
        let limit = self.limits.pending_timers.saturating_mul(2);
        self.fetch(Reading::WaitsOf(run, Box::new(repair)), Fetch::WaitsOf(run, limit));
    }

    pub(super) fn waits_read(&mut self, run: RunId, mut repair: Repair, waits: Vec<WaitRow>) {
        repair.waits = waits;
        self.with_run(run, Todo::Repair(Box::new(repair)));
    }

    pub(super) fn repair(&mut self, run: RunId, repair: Repair) {
        let Repair { ticket, identity, waits } = repair;
        self.refused.remove(&run);
        let reply = self.decide(run, Input::Repair { identity });
        self.ensure_rows(run);
        self.remove_waits(run, &waits);
        self.operated(run, ticket, reply);
    }

    /// Removes what is listed and not waited for. What was read may be old, but a row that the run has
    /// since written is one that it should have.
    fn remove_waits(&mut self, run: RunId, listed: &[WaitRow]) {
        let Some(entry) = self.cache.get(run) else { return };
        let wanted = |listed: &WaitRow| {
            let mut rows = entry.rows.values().flatten();
            rows.any(|row| matches!(row, Row::Wait(row) if row.wait == listed.wait))
        };
        let left = listed.iter().filter(|row| !wanted(row));
        let deletes: Vec<_> =
            left.map(|row| Write::DeleteWait { run, wait: row.wait.clone() }).collect();
        if !deletes.is_empty() {
            entry.written_in = self.pipeline.push(Some(run), deletes);
        }
    }

    /// Puts every row that the run should have: a row is an index of the log and can be rebuilt.
    pub(super) fn ensure_rows(&mut self, run: RunId) {
        let Some(entry) = self.cache.get(run) else { return };
        entry.rows = cache::project_all(&entry.run);
        // A run that waits for a child or an update needs no row but its own.
        if entry.rows.values().flatten().all(|row| matches!(row, Row::Run(_))) {
            return;
        }
        let puts: Vec<_> = entry.rows.values().flatten().cloned().map(Row::put).collect();
        let due: Vec<_> = entry.run.due_keys();
        let waiting = entry.run.task != Task::Idle;
        let activities: Vec<_> = entry.run.activities.keys().copied().collect();
        let effects: Vec<_> = entry.run.outbox.keys().copied().collect();
        entry.written_in = self.pipeline.push(Some(run), puts);
        for key in due {
            if let Some(at) = self.cache.peek(run).and_then(|entry| entry.run.due(&key)) {
                self.alarms.set_due(at, run, key);
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
