//! Which batches this process carries out, so that one task at a time does, and none is left without.

use std::{collections::BTreeMap, sync::Mutex};

use abide_core::ids::NamespaceId;

use crate::lock::lock;

/// Namespace and id of a batch.
pub(crate) type BatchName = (NamespaceId, String);

/// The batches that have a task, and whether the task must look once more before it ends.
#[derive(Debug, Default)]
pub(crate) struct Driven(Mutex<BTreeMap<BatchName, bool>>);

/// The task of a batch. If it is cancelled or panics, another one may begin.
#[derive(Debug)]
pub(super) struct Drive<'a> {
    driven: &'a Driven,
    name: BatchName,
    ended: bool,
}

impl Driven {
    /// Begins the task of a batch. If there is one, that one looks once more: it may have seen the batch
    /// before it was written.
    pub(super) fn begin(&self, name: BatchName) -> Option<Drive<'_>> {
        let mut driven = lock(&self.0);
        if let Some(again) = driven.get_mut(&name) {
            *again = true;
            return None;
        }
        driven.insert(name.clone(), false);
        Some(Drive { driven: self, name, ended: false })
    }
}

impl Drive<'_> {
    pub(super) const fn name(&self) -> &BatchName {
        &self.name
    }

    /// Ends the task, unless it must look once more; says whether it has ended.
    pub(super) fn end(&mut self) -> bool {
        let mut driven = lock(&self.driven.0);
        if let Some(again @ true) = driven.get_mut(&self.name) {
            *again = false;
            return false;
        }
        driven.remove(&self.name);
        self.ended = true;
        true
    }
}

impl Drop for Drive<'_> {
    fn drop(&mut self) {
        if !self.ended {
            lock(&self.driven.0).remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> BatchName {
        ("n".into(), "b".into())
    }

    #[test]
    fn a_batch_has_one_task_and_what_comes_meanwhile_is_looked_at() {
        let driven = Driven::default();
        let mut drive = driven.begin(name()).unwrap();
        assert!(driven.begin(name()).is_none());
        assert!(!drive.end(), "it was asked for again");
        assert!(drive.end());
        let next = driven.begin(name()).unwrap();
        drop(drive);
        assert!(driven.begin(name()).is_none(), "the end of the first is not that of the next");
        drop(next);
        assert!(driven.begin(name()).is_some(), "a task that was cancelled is no longer one");
    }
}
