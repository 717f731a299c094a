//! Bugs in what is written: missing, left over or altered rows, and torn, lost or unfenced batches.

use std::time::Duration;

use abide_core::{
    codec,
    event::Fact,
    ids::RunId,
    note::{Note, Record},
};
use abide_store::{
    Batch, CommitError, Write,
    memory::Tables,
    rows::{LogRow, RunStatus},
};

use super::{Bug, Saboteur};

impl Saboteur {
    /// The batch as the store gets it.
    pub fn batch(&mut self, mut batch: Batch) -> Batch {
        if self.bug.is_none() {
            return batch;
        }
        if self.bug == Some(Bug::SwappedRows) {
            swap_rows(&mut batch);
            return batch;
        }
        if let Some(forgotten) = self.forgotten_run(&batch) {
            batch.writes.retain(|write| run_of(write) != Some(forgotten));
        }
        let moved = self.moved_timers(&batch);
        let mut writes = Vec::with_capacity(batch.writes.len());
        for mut write in batch.writes {
            let lost = match &write {
                Write::PutWait(row) if self.keeps_old_end(row) => true,
                Write::DeleteDue(key) if moved.contains(&(key.run, key.timer.clone())) => {
                    self.strikes(Bug::OldDueRow)
                }
                Write::PutDue(_) => self.strikes(Bug::LostDueRow),
                Write::PutWait(_) => self.strikes(Bug::LostWaitRow),
                Write::PutTask(_) => self.strikes(Bug::LostTaskRow),
                Write::PutOutbox(_) => self.strikes(Bug::LostOutboxRow),
                Write::PutInbox(_) => self.strikes(Bug::LostInboxRow),
                Write::PutRun(_) => self.strikes(Bug::LostRunRow),
                Write::PutAttribute(_) => self.strikes(Bug::LostAttribute),
                Write::DeleteAttribute { .. } => self.strikes(Bug::KeptAttribute),
                Write::DeleteRun(_) => self.strikes(Bug::KeptRun),
                Write::DeleteDue(_) => self.strikes(Bug::KeptDueRow),
                Write::DeleteWait { .. } => self.strikes(Bug::KeptWaitRow),
                Write::DeleteTask(_) => self.strikes(Bug::KeptTaskRow),
                Write::DeleteOutbox { .. } => self.strikes(Bug::KeptOutboxRow),
                _ => false,
            };
            if !lost {
                self.alter(&mut write);
                writes.push(write);
            }
        }
        batch.writes = writes;
        batch
    }

    /// A run whose writes are all dropped: one that continues another, or one that replaces it.
    fn forgotten_run(&mut self, batch: &Batch) -> Option<RunId> {
        if !matches!(self.bug, Some(Bug::LostSuccessor | Bug::KeptOpen)) {
            return None;
        }
        let rows = || {
            batch.writes.iter().filter_map(|write| match write {
                Write::AppendLog(row) => Some(row),
                _ => None,
            })
        };
        let first = rows().find(|row| row.sequence == 1)?;
        let has = |row: &LogRow, wanted: fn(&Fact) -> bool| {
            let events = codec::decode_events(row.events.clone()).unwrap_or_default();
            events.iter().any(|event| wanted(&event.body.fact))
        };
        if has(first, |fact| matches!(fact, Fact::RunStarted(start) if start.previous.is_some())) {
            return self.strikes(Bug::LostSuccessor).then_some(first.run);
        }
        let ended = rows().find(|row| has(row, |fact| matches!(fact, Fact::RunTerminated(_))))?;
        self.strikes(Bug::KeptOpen).then_some(ended.run)
    }

    fn alter(&mut self, write: &mut Write) {
        match write {
            Write::PutRun(row) => {
                if row.closed_at.is_some() && self.strikes(Bug::OpenAfterClose) {
                    row.status = RunStatus::Running;
                }
                if row.start_key.is_some() && self.strikes(Bug::StartKeyMissing) {
                    row.start_key = None;
                }
            }
            Write::AppendLog(row) => self.alter_log(row),
            Write::PutSnapshot(row) => {
                if self.strikes(Bug::SnapshotNumber) {
                    row.sequence += 1;
                }
                if self.bug == Some(Bug::OutdatedSnapshot) {
                    let before = self.snapshots.insert(row.run, row.state.clone());
                    row.state = before.unwrap_or_else(|| row.state.clone());
                }
            }
            _ => {}
        }
    }

    fn alter_log(&mut self, row: &mut LogRow) {
        if !row.notes.is_empty() && self.strikes(Bug::LostNotes) {
            row.notes = bytes::Bytes::new();
        }
        if !row.notes.is_empty() && self.strikes(Bug::LostBufferedInput) {
            alter_records(row, |record| !matches!(record, Record::Note(Note::InputBuffered(_))));
        }
        if self.bug == Some(Bug::DetachmentLost) && !row.notes.is_empty() {
            let detached =
                |record: &Record| matches!(record, Record::Note(Note::AttemptDetached { .. }));
            alter_records(row, |record| !detached(record));
        }
        if self.bug == Some(Bug::OldDeadline) {
            let (run, deadlines) = (row.run, &mut self.deadlines);
            alter_records(row, |record| {
                deadlines.alter(run, record);
                true
            });
        }
        if !row.events.is_empty() && self.strikes(Bug::EventInFuture) {
            alter_records(row, |record| {
                if let Record::Event(event) = record {
                    event.time = event.time.saturating_add(Duration::from_secs(3600));
                }
                true
            });
        }
    }

    /// Whether a commit is acknowledged before it is written.
    pub fn answers_early(&mut self, writer: u32) -> bool {
        let early = self.strikes(Bug::EarlyAcknowledgement);
        if early {
            *self.answered.entry(writer).or_default() += 1;
        }
        early
    }

    /// Whether the commit was already acknowledged.
    pub fn was_answered(&mut self, writer: u32) -> bool {
        match self.answered.get_mut(&writer) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }

    /// Whether the commit is acknowledged, but not written.
    pub fn loses(&mut self, batch: &Batch) -> bool {
        let claims = batch.writes.iter().any(|write| matches!(write, Write::Claim { .. }));
        !claims && self.strikes(Bug::LostCommit)
    }

    /// What the machine is told about its commit.
    pub fn commit_answer(&mut self, answer: Result<(), CommitError>) -> Result<(), CommitError> {
        match answer {
            Err(CommitError::Unknown(_)) if self.bug == Some(Bug::UnknownTakenAsDone) => Ok(()),
            answer => answer,
        }
    }

    /// The batch with an epoch that the store accepts, if fencing is off.
    pub fn unfenced(&mut self, tables: &Tables, batch: &Batch) -> Option<Batch> {
        let stored = tables.shard(batch.shard).epoch;
        let claims = batch.writes.iter().any(|write| matches!(write, Write::Claim { .. }));
        (self.bug == Some(Bug::StaleWriter) && !claims && stored != batch.epoch)
            .then(|| Batch { epoch: stored, ..batch.clone() })
    }

    /// One half of a batch that was in flight when the process died.
    pub fn torn(&mut self, batch: &Batch) -> Option<Batch> {
        let half = batch.writes.len() / 2;
        (self.bug == Some(Bug::TornBatch) && half > 0)
            .then(|| Batch { writes: batch.writes[..half].to_vec(), ..batch.clone() })
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others are about no run in particular")]
fn run_of(write: &Write) -> Option<RunId> {
    match write {
        Write::AppendLog(row) => Some(row.run),
        Write::PutSnapshot(row) => Some(row.run),
        Write::PutRun(row) => Some(row.run),
        Write::PutTask(row) => Some(row.key.run),
        Write::DeleteTask(key) => Some(key.run),
        Write::PutDue(row) => Some(row.run),
        Write::DeleteDue(key) => Some(key.run),
        Write::PutWait(row) => Some(row.run),
        Write::PutOutbox(row) => Some(row.run),
        Write::DeleteWait { run, .. } | Write::DeleteOutbox { run, .. } => Some(*run),
        _ => None,
    }
}

/// Rewrites the records of a row, without those that are not kept.
fn alter_records(row: &mut LogRow, keep: impl FnMut(&mut Record) -> bool) {
    let encoded = codec::Row { events: row.events.clone(), notes: row.notes.clone() };
    let Ok(mut records) = codec::decode_row(&encoded) else { return };
    records.retain_mut(keep);
    let codec::Row { events, notes } = codec::encode_row(&records);
    (row.events, row.notes) = (events, notes);
}

/// Swaps the events of the first two log rows.
fn swap_rows(batch: &mut Batch) {
    let mut rows = batch.writes.iter_mut().filter_map(|write| match write {
        Write::AppendLog(row) => Some(row),
        _ => None,
    });
    if let (Some(one), Some(two)) = (rows.next(), rows.next()) {
        std::mem::swap(&mut one.events, &mut two.events);
    }
}
