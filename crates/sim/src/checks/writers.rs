//! Who may write, and that snapshots match the log.

use abide_core::run::Run;
use abide_store::{Batch, Write, rows::SnapshotRow};

use super::{Check, Checked, Violation, ledger::Ledger};

/// The last claim of a shard.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub writer: u32,
    pub epoch: u64,
}

/// Only the machine that last claimed the shard writes to it, and claims raise the epoch.
pub fn owner_writes(ledger: &mut Ledger, writer: u32, batch: &Batch) -> Checked {
    let shard = batch.shard;
    let last = ledger.claims.get(&shard).copied();
    let claimed = batch.writes.iter().find_map(|write| match write {
        Write::Claim { epoch, .. } => Some(*epoch),
        _ => None,
    });
    match (last, claimed) {
        (Some(last), Some(epoch)) if epoch <= last.epoch => {
            let what = format!("shard {shard} claimed at {epoch}, was at {}", last.epoch);
            return Err(Violation::new(Check::Epochs, what));
        }
        (_, Some(epoch)) => {
            ledger.claims.insert(shard, Claim { writer, epoch });
        }
        (Some(last), None) if last.writer == writer && last.epoch == batch.epoch => {}
        (_, None) => {
            let what = format!("machine {writer} wrote to shard {shard} at {}", batch.epoch);
            return Err(Violation::new(Check::Epochs, what));
        }
    }
    Ok(())
}

/// A snapshot is the fold of the log up to its row.
pub fn snapshot_is_fold(ledger: &Ledger, row: &SnapshotRow) -> Checked {
    let wrong = |what: String| Err(Violation::of(Check::Snapshots, row.run, what));
    let Some(story) = ledger.stories.get(&row.run) else {
        return wrong("a snapshot of a run that has no log".into());
    };
    if row.sequence > story.run.log_rows {
        return wrong(format!("snapshot at row {} of {}", row.sequence, story.run.log_rows));
    }
    if row.sequence == story.run.log_rows && row.state != story.run.to_snapshot() {
        return wrong(format!("the snapshot at row {} is not the fold of the log", row.sequence));
    }
    let Some(read) = Run::from_snapshot(&row.state) else {
        return wrong("the snapshot cannot be read".into());
    };
    if read.log_rows != row.sequence {
        return wrong(format!("snapshot of row {} says row {}", read.log_rows, row.sequence));
    }
    Ok(())
}
