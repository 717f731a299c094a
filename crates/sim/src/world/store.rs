//! The store as machines see it: commits and reads that take time and fail, on tables that never
//! do.

use abide_core::{
    codec,
    ids::{RunId, ShardId},
    note::Record,
    operation::Ticket,
    search::Definitions,
};
use abide_shard::message::{Fetch, Fetched, Message};
use abide_store::{Batch, CommitError, ReadError, WaitFilter, Write, memory::Tables};

use super::{Event, World, slots::SlotId};
use crate::{
    checks::{Checked, Violation},
    schedule::{MILLIS, SECOND},
    settings::delay,
    trace::brief,
};

impl World {
    /// A machine requests a commit.
    pub(super) fn begin_commit(&mut self, id: SlotId, batch: Batch) -> Checked {
        self.one_commit(id)?;
        self.times_are_true(id, &batch)?;
        let batch = self.saboteur.batch(batch);
        if self.saboteur.answers_early(id) {
            self.plan_in(0, Event::ToSlot(id, Message::Committed(Ok(()))));
        }
        let slow = self.trouble(self.settings.odds.commit_slow);
        let later = delay(&mut self.rng, 8 * MILLIS, slow);
        self.plan_in(later, Event::Commit(id, Box::new(batch)));
        Ok(())
    }

    /// The store executes a commit. Its machine may be gone by now; the writes are applied
    /// nevertheless.
    pub(super) fn carry_out_commit(&mut self, id: SlotId, batch: Batch) -> Checked {
        if self.saboteur.was_answered(id) {
            return self.apply(id, &batch).map(|_| ());
        }
        let odds = &self.settings.odds;
        let (refused, unavailable, unknown) =
            (odds.commit_refused, odds.commit_unavailable, odds.commit_unknown);
        let cut = self.slots.get(&id).is_some_and(|slot| self.cut_off(slot.node));
        let answer = if cut {
            Err(CommitError::Unavailable("cut off".into()))
        } else if self.now < self.full_until {
            Err(CommitError::Full("for a while".into()))
        } else if self.saboteur.loses(&batch) {
            Ok(())
        } else if self.may_refuse(&batch) && self.trouble(refused) {
            self.refused.extend(runs_of(&batch));
            Err(CommitError::Refused("by chance".into()))
        } else if self.trouble(unavailable) {
            Err(CommitError::Unavailable("by chance".into()))
        } else if self.trouble(unknown) {
            match self.rng.weighted(&[5, 4, 1]) {
                0 => {}
                1 => drop(self.apply(id, &batch)?),
                _ => {
                    let later = self.rng.below(SECOND);
                    self.plan_in(later, Event::LateCommit(id, Box::new(batch)));
                }
            }
            Err(CommitError::Unknown("by chance".into()))
        } else {
            self.apply(id, &batch)?
        };
        let answer = self.saboteur.commit_answer(answer);
        let later = self.rng.below(2 * MILLIS);
        self.plan_in(later, Event::ToSlot(id, Message::Committed(answer)));
        Ok(())
    }

    /// Refusing a run's writes twice would be a real error: the run would be set aside.
    fn may_refuse(&self, batch: &Batch) -> bool {
        !runs_of(batch).any(|run| self.refused.contains(&run))
    }

    /// Writes the batch, and updates the ledger.
    pub(super) fn apply(
        &mut self,
        id: SlotId,
        batch: &Batch,
    ) -> Result<Result<(), CommitError>, Violation> {
        let applied = match self.saboteur.unfenced(&self.tables, batch) {
            Some(batch) => self.tables.apply(&batch),
            None => self.tables.apply(batch),
        };
        if applied.is_ok() {
            if self.trace.on() {
                self.trace_batch(id, batch);
            }
            self.ledger.apply(id, batch)?;
            self.note_due_rows(batch);
            self.note_blocked(batch);
            self.timers_are_punctual(id)?;
        }
        Ok(applied)
    }

    fn trace_batch(&mut self, id: SlotId, batch: &Batch) {
        for write in &batch.writes {
            let Write::AppendLog(row) = write else { continue };
            let encoded = codec::Row { events: row.events.clone(), notes: row.notes.clone() };
            let records = codec::decode_row(&encoded).unwrap_or_default();
            let names: Vec<_> = records.iter().map(record_name).collect();
            let (now, sequence) = (self.now, row.sequence);
            self.trace.note(Some(row.run), || {
                format!("{now:>12} #{id} committed row {sequence}: {}", names.join(", "))
            });
        }
    }

    /// A machine requests a read. It sees what was committed before, and perhaps later commits.
    pub(super) fn read(&mut self, id: SlotId, ticket: Ticket, fetch: &Fetch) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.reads();
        let (shard, node) = (slot.shard, slot.node);
        let slow = self.trouble(self.settings.odds.read_slow);
        let later = delay(&mut self.rng, 2 * MILLIS, slow);
        let answer = if self.cut_off(node) || self.trouble(self.settings.odds.read_fails) {
            Err(ReadError::Unavailable("by chance".into()))
        } else {
            let fetched = fetch_from(&self.tables, shard, fetch);
            Ok(self.saboteur.fetched(fetch, fetched))
        };
        self.plan_in(later, Event::ToSlot(id, Message::Fetched(ticket, answer)));
    }
}

fn runs_of(batch: &Batch) -> impl Iterator<Item = RunId> {
    batch.writes.iter().filter_map(|write| match write {
        Write::AppendLog(row) => Some(row.run),
        _ => None,
    })
}

fn record_name(record: &Record) -> String {
    match record {
        Record::Event(event) => format!("{} {}", event.number, event.body.fact.name()),
        Record::Note(note) => brief(note),
    }
}

pub(crate) fn fetch_from(tables: &Tables, shard: ShardId, fetch: &Fetch) -> Fetched {
    match fetch {
        Fetch::Shard => Fetched::Shard(tables.shard(shard)),
        Fetch::RunsOf(workflow, limit) => Fetched::Runs(tables.runs_of(shard, workflow, *limit)),
        Fetch::Load(run, limit) => Fetched::Load(tables.load(shard, *run, *limit)),
        Fetch::Log(run, after, limit) => Fetched::Log(tables.log(shard, *run, *after, *limit)),
        Fetch::Tasks(after, limit) => Fetched::Tasks(tables.tasks(shard, after.as_ref(), *limit)),
        Fetch::Due(after, until, limit) => {
            Fetched::Due(tables.due(shard, after.as_ref(), *until, *limit))
        }
        Fetch::Outbox(after, limit) => Fetched::Outbox(tables.outbox(shard, *after, *limit)),
        Fetch::Inbox(source, number) => Fetched::Inbox(tables.inbox(shard, *source, *number)),
        Fetch::WaitsOf(run, limit) => {
            let filter = WaitFilter { run: Some((shard, *run)), ..WaitFilter::default() };
            let rows = tables.waits(&filter, *limit);
            Fetched::Waits(rows.into_iter().map(|(_, row)| row).collect())
        }
        Fetch::Registered(namespace) => {
            let name = Definitions::registry_name(namespace);
            let rows = tables.registry(&name);
            Fetched::Registered(rows.into_iter().find(|row| row.name == name))
        }
        Fetch::Stranded(after, limit) => Fetched::Stranded(tables.stranded(shard, *after, *limit)),
    }
}
