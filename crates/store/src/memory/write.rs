//! Applies a batch to the tables. It first checks everything that could refuse the batch and then
//! writes, so that a refused batch leaves no trace.

use std::collections::BTreeSet;

use abide_core::ids::{ShardId, WorkflowKey};

use crate::{
    Batch, CommitError, Write,
    memory::Tables,
    rows::{RegistryRow, RunRow, ShardRow},
};

impl Tables {
    /// Writes the whole batch, or nothing of it.
    pub fn apply(&mut self, batch: &Batch) -> Result<(), CommitError> {
        self.check_epochs(batch)?;
        self.check_log(batch)?;
        for write in &batch.writes {
            self.write(batch, write);
        }
        Ok(())
    }

    /// Writes the row if the stored version is one less, and returns whether it did.
    pub fn put_registry(&mut self, row: RegistryRow) -> bool {
        let stored = self.registry.get(&row.name).map_or(0, |row| row.version);
        let fits = stored.checked_add(1) == Some(row.version);
        if fits {
            self.registry.insert(row.name.clone(), row);
        }
        fits
    }

    fn check_epochs(&self, batch: &Batch) -> Result<(), CommitError> {
        let shard = batch.shard;
        let mut stored = self.shard(shard).epoch;
        if stored != batch.epoch {
            return Err(CommitError::Stale { shard, stored, batch: batch.epoch });
        }
        for write in &batch.writes {
            if let Write::Claim { epoch, .. } = write {
                if *epoch <= stored {
                    return Err(CommitError::claim_not_higher(shard, stored, *epoch));
                }
                stored = *epoch;
            }
        }
        Ok(())
    }

    fn check_log(&self, batch: &Batch) -> Result<(), CommitError> {
        let mut deleted = BTreeSet::new();
        let mut appended = BTreeSet::new();
        for write in &batch.writes {
            match write {
                Write::DeleteRun(run) => {
                    deleted.insert(*run);
                    appended.retain(|(appended_run, _)| appended_run != run);
                }
                Write::AppendLog(row) => {
                    let key = (batch.shard, row.run, row.sequence);
                    let stored = self.log.contains_key(&key) && !deleted.contains(&row.run);
                    if stored || !appended.insert((row.run, row.sequence)) {
                        return Err(CommitError::log_row_exists(row.run, row.sequence));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes a run from the workflow index, and the workflow with its last run.
    fn forget_workflow(&mut self, shard: ShardId, row: &RunRow) {
        let key = (shard, workflow_of(row));
        if let Some(runs) = self.runs_of.get_mut(&key) {
            runs.remove(&row.run);
            if runs.is_empty() {
                self.runs_of.remove(&key);
            }
        }
    }

    fn write(&mut self, batch: &Batch, write: &Write) {
        let shard = batch.shard;
        match write.clone() {
            Write::Claim { epoch, owner } => {
                self.shards.insert(shard, ShardRow { shard, epoch, owner });
            }
            Write::AppendLog(row) => {
                self.log.insert((shard, row.run, row.sequence), row);
            }
            Write::PutSnapshot(row) => {
                self.snapshots.insert((shard, row.run), row);
            }
            Write::PutRun(row) => {
                if let Some(before) = self.runs.insert((shard, row.run), row.clone()) {
                    self.forget_workflow(shard, &before);
                }
                self.runs_of.entry((shard, workflow_of(&row))).or_default().insert(row.run);
            }
            Write::DeleteRun(run) => {
                if let Some(row) = self.runs.remove(&(shard, run)) {
                    self.forget_workflow(shard, &row);
                }
                self.attributes.retain(|(at, of, ..), _| (*at, *of) != (shard, run));
                self.snapshots.remove(&(shard, run));
                self.log.retain(|(at, of, _), _| (*at, *of) != (shard, run));
            }
            Write::PutTask(row) => {
                self.tasks.insert((shard, row.key.clone()), row);
            }
            Write::DeleteTask(key) => {
                self.tasks.remove(&(shard, key));
            }
            Write::PutDue(row) => {
                self.due.insert((shard, row.key()), row);
            }
            Write::DeleteDue(key) => {
                self.due.remove(&(shard, key));
            }
            Write::PutWait(row) => {
                self.waits.insert((shard, row.run, row.wait.clone()), row);
            }
            Write::DeleteWait { run, wait } => {
                self.waits.remove(&(shard, run, wait));
            }
            Write::PutAttribute(row) => {
                let key = (shard, row.run, row.name.clone(), row.value.clone());
                self.attributes.insert(key, row);
            }
            Write::DeleteAttribute { run, name, value } => {
                self.attributes.remove(&(shard, run, name, value));
            }
            Write::PutOutbox(row) => {
                self.outbox.insert((shard, row.run, row.number), row);
            }
            Write::DeleteOutbox { run, number } => {
                self.outbox.remove(&(shard, run, number));
            }
            Write::PutInbox(row) => {
                self.inbox.insert((shard, row.source, row.number), row);
            }
            Write::DeleteInbox { source, number } => {
                self.inbox.remove(&(shard, source, number));
            }
            Write::DeleteInboxBefore(at) => {
                self.inbox.retain(|(of, _, _), row| *of != shard || row.at >= at);
            }
        }
    }
}

fn workflow_of(row: &RunRow) -> WorkflowKey {
    WorkflowKey { namespace: row.namespace.clone(), workflow: row.workflow.clone() }
}
