//! What a transaction writes, table by table. Only the last write to each row counts, so each table
//! takes one statement for the rows to put and one for the rows to delete. The log is the
//! exception: a row that is appended and then deleted must not have existed before, so a delete
//! after an append starts a new stage.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use abide_store::{
    Batch, CommitError, Write,
    rows::{
        AttributeRow, DueRow, InboxRow, LogRow, OutboxRow, RunRow, SnapshotRow, TaskKey, TaskRow,
        WaitRow,
    },
};

use crate::{
    session::Call,
    tables::{Last, attributes, due, inbox, log, outbox, runs, shards, snapshots, tasks, waits},
};

/// Stages of a transaction, in order.
#[derive(Default)]
pub(super) struct Plan<'a> {
    stages: Vec<WriteStage<'a>>,
}

/// Writes that need only one statement per table.
#[derive(Default)]
struct WriteStage<'a> {
    claims: BTreeMap<ShardId, (u64, &'a str)>,
    deleted_logs: BTreeSet<(ShardId, RunId)>,
    log: BTreeMap<(ShardId, RunId, u64), &'a LogRow>,
    runs: BTreeMap<(ShardId, RunId), Last<'a, RunRow>>,
    snapshots: BTreeMap<(ShardId, RunId), Last<'a, SnapshotRow>>,
    tasks: BTreeMap<(ShardId, &'a TaskKey), Last<'a, TaskRow>>,
    due: BTreeMap<due::DueEntryKey<'a>, Last<'a, DueRow>>,
    waits: BTreeMap<waits::WaitKey<'a>, Last<'a, WaitRow>>,
    attributes: BTreeMap<attributes::AttributeKey<'a>, Last<'a, AttributeRow>>,
    outbox: BTreeMap<(ShardId, RunId, u64), Last<'a, OutboxRow>>,
    inbox: BTreeMap<(ShardId, RunId, u64), Last<'a, InboxRow>>,
    /// Deletes older results, before the results of this stage are written.
    old_inbox: BTreeMap<ShardId, Timestamp>,
}

impl<'a> Plan<'a> {
    /// Adds the batch, or returns why it cannot be written; then nothing of it is added.
    pub(super) fn add(&mut self, batch: &'a Batch) -> Result<(), CommitError> {
        self.check(batch)?;
        for write in &batch.writes {
            if let Write::DeleteRun(run) = write
                && self.stages.last().is_some_and(|stage| stage.logs(batch.shard, *run))
            {
                self.stages.push(WriteStage::default());
            }
            if self.stages.is_empty() {
                self.stages.push(WriteStage::default());
            }
            if let Some(stage) = self.stages.last_mut() {
                stage.add(batch.shard, write);
            }
        }
        Ok(())
    }

    /// Rejects what no statement could store. The database itself rejects log rows that it already has.
    fn check(&self, batch: &Batch) -> Result<(), CommitError> {
        let mut added = BTreeSet::new();
        let mut removed = BTreeSet::new();
        for write in &batch.writes {
            if numbers(write).into_iter().flatten().any(|number| i64::try_from(number).is_err()) {
                let reason = "a number is 2^63 or more, for which there is no column".to_owned();
                return Err(CommitError::Refused(reason));
            }
            match write {
                Write::AppendLog(row) => {
                    let key = (batch.shard, row.run, row.sequence);
                    let before = !removed.contains(&row.run)
                        && self.stages.last().is_some_and(|stage| stage.log.contains_key(&key));
                    if before || !added.insert((row.run, row.sequence)) {
                        return Err(CommitError::log_row_exists(row.run, row.sequence));
                    }
                }
                Write::DeleteRun(run) => {
                    added.retain(|(of, _)| of != run);
                    removed.insert(*run);
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn calls(&self) -> Vec<Call<'a>> {
        self.stages.iter().flat_map(WriteStage::calls).collect()
    }

    /// The statements, if their order does not matter: none touches a row that another does, and no
    /// shard is claimed.
    pub(super) fn independent_calls(&self) -> Option<Vec<Call<'a>>> {
        let [stage] = &self.stages[..] else { return None };
        let independent =
            stage.claims.is_empty() && stage.deleted_logs.is_empty() && stage.old_inbox.is_empty();
        independent.then(|| stage.calls())
    }

    /// Log rows that the transaction appends.
    pub(super) fn log_rows(&self) -> Vec<(ShardId, &'a LogRow)> {
        self.stages.iter().flat_map(WriteStage::log_rows).collect()
    }
}

/// Numbers that must fit a column.
fn numbers(write: &Write) -> [Option<u64>; 2] {
    match write {
        Write::Claim { epoch, .. } => [Some(*epoch), None],
        Write::AppendLog(row) => [Some(row.sequence), Some(row.first_event)],
        Write::PutSnapshot(row) => [Some(row.sequence), None],
        Write::PutRun(row) => [Some(row.ordinal), None],
        Write::PutTask(row) => [Some(row.key.scheduled), None],
        Write::DeleteTask(key) => [Some(key.scheduled), None],
        Write::PutOutbox(row) => [Some(row.number), None],
        Write::PutInbox(row) => [Some(row.number), None],
        Write::DeleteOutbox { number, .. } | Write::DeleteInbox { number, .. } => {
            [Some(*number), None]
        }
        Write::DeleteRun(_)
        | Write::PutDue(_)
        | Write::DeleteDue(_)
        | Write::PutWait(_)
        | Write::DeleteWait { .. }
        | Write::PutAttribute(_)
        | Write::DeleteAttribute { .. }
        | Write::DeleteInboxBefore(_) => [None, None],
    }
}

impl<'a> WriteStage<'a> {
    /// Whether this stage appends to the run's log.
    fn logs(&self, shard: ShardId, run: RunId) -> bool {
        self.log.range((shard, run, 0)..=(shard, run, u64::MAX)).next().is_some()
    }

    fn add(&mut self, shard: ShardId, write: &'a Write) {
        match write {
            Write::Claim { epoch, owner } => {
                self.claims.insert(shard, (*epoch, owner));
            }
            Write::AppendLog(row) => {
                self.log.insert((shard, row.run, row.sequence), row);
            }
            Write::PutSnapshot(row) => {
                self.snapshots.insert((shard, row.run), Some(row));
            }
            Write::PutRun(row) => {
                self.runs.insert((shard, row.run), Some(row));
            }
            Write::DeleteRun(run) => {
                self.runs.insert((shard, *run), None);
                self.snapshots.insert((shard, *run), None);
                self.deleted_logs.insert((shard, *run));
                // Values that are written from here on are put after the others are deleted.
                self.attributes.retain(|(of, of_run, ..), _| (*of, *of_run) != (shard, *run));
            }
            Write::PutTask(row) => {
                self.tasks.insert((shard, &row.key), Some(row));
            }
            Write::DeleteTask(key) => {
                self.tasks.insert((shard, key), None);
            }
            Write::PutDue(row) => {
                self.due.insert((shard, row.due, row.run, &row.timer), Some(row));
            }
            Write::DeleteDue(key) => {
                self.due.insert((shard, key.due, key.run, &key.timer), None);
            }
            Write::PutWait(row) => {
                self.waits.insert((shard, row.run, &row.wait), Some(row));
            }
            Write::DeleteWait { run, wait } => {
                self.waits.insert((shard, *run, wait), None);
            }
            Write::PutAttribute(row) => {
                self.attributes.insert((shard, row.run, &row.name, &row.value), Some(row));
            }
            Write::DeleteAttribute { run, name, value } => {
                self.attributes.insert((shard, *run, name, value), None);
            }
            Write::PutOutbox(row) => {
                self.outbox.insert((shard, row.run, row.number), Some(row));
            }
            Write::DeleteOutbox { run, number } => {
                self.outbox.insert((shard, *run, *number), None);
            }
            Write::PutInbox(row) => {
                self.inbox.insert((shard, row.source, row.number), Some(row));
            }
            Write::DeleteInbox { source, number } => {
                self.inbox.insert((shard, *source, *number), None);
            }
            Write::DeleteInboxBefore(at) => self.forget_inbox(shard, *at),
        }
    }

    /// Deletes old results: those in the database, and those that this stage would add.
    fn forget_inbox(&mut self, shard: ShardId, before: Timestamp) {
        let old = |(of, _, _): &(ShardId, RunId, u64), row: &Last<'_, InboxRow>| {
            *of == shard && row.is_some_and(|row| row.at < before)
        };
        for (key, row) in &mut self.inbox {
            if old(key, row) {
                *row = None;
            }
        }
        let until = self.old_inbox.entry(shard).or_insert(before);
        *until = before.max(*until);
    }

    fn log_rows(&self) -> Vec<(ShardId, &'a LogRow)> {
        self.log.iter().map(|((shard, ..), row)| (*shard, *row)).collect()
    }

    fn calls(&self) -> Vec<Call<'a>> {
        let mut calls = Vec::new();
        let claims: Vec<_> =
            self.claims.iter().map(|(shard, (epoch, owner))| (*shard, *epoch, *owner)).collect();
        add_call(&mut calls, &claims, shards::claim);
        let deleted: Vec<_> = self.deleted_logs.iter().copied().collect();
        add_call(&mut calls, &deleted, log::delete);
        add_call(&mut calls, &deleted, attributes::delete_all);
        add_call(&mut calls, &self.log_rows(), log::append);
        let old: Vec<_> = self.old_inbox.iter().map(|(shard, at)| (*shard, *at)).collect();
        add_call(&mut calls, &old, inbox::delete_before);
        add_calls(&mut calls, &self.runs, |key| key.0, (runs::delete, runs::put));
        add_calls(&mut calls, &self.snapshots, |key| key.0, (snapshots::delete, snapshots::put));
        add_calls(&mut calls, &self.tasks, |key| key.0, (tasks::delete, tasks::put));
        add_calls(&mut calls, &self.due, |key| key.0, (due::delete, due::put));
        add_calls(&mut calls, &self.waits, |key| key.0, (waits::delete, waits::put));
        add_calls(&mut calls, &self.attributes, |key| key.0, (attributes::delete, attributes::put));
        add_calls(&mut calls, &self.outbox, |key| key.0, (outbox::delete, outbox::put));
        add_calls(&mut calls, &self.inbox, |key| key.0, (inbox::delete, inbox::put));
        calls
    }
}

/// Deletes rows by key.
type Delete<'a, K> = fn(&[K]) -> Call<'a>;

type Put<'a, R> = fn(&[(ShardId, &'a R)]) -> Call<'a>;

/// Adds the statement for these rows, if there are any.
fn add_call<'a, R>(calls: &mut Vec<Call<'a>>, rows: &[R], call: fn(&[R]) -> Call<'a>) {
    if !rows.is_empty() {
        calls.push(call(rows));
    }
}

/// Adds the statements that delete rows of a table and put others.
fn add_calls<'a, K: Copy, R>(
    calls: &mut Vec<Call<'a>>,
    table: &BTreeMap<K, Last<'a, R>>,
    shard: fn(&K) -> ShardId,
    (delete, put): (Delete<'a, K>, Put<'a, R>),
) {
    let gone: Vec<_> = table.iter().filter(|(_, row)| row.is_none()).map(|(key, _)| *key).collect();
    let kept: Vec<_> =
        table.iter().filter_map(|(key, row)| row.map(|row| (shard(key), row))).collect();
    add_call(calls, &gone, delete);
    add_call(calls, &kept, put);
}
