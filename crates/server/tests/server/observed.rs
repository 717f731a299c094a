//! A store in memory that counts reads of its log, may lose the answer to a commit, and may be cut off.

use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use abide_store::{
    Batch, CommitError, Pending, ReadError, Store,
    forward::{Forward, Read},
    memory::MemoryStore,
    rows::RegistryRow,
};

#[derive(Default)]
pub(crate) struct ObservedStore {
    kept: Arc<MemoryStore>,
    cut_off: AtomicBool,
    log_reads: AtomicUsize,
    loses_answer: AtomicBool,
}

impl ObservedStore {
    /// The way of one node to a store that others use as well.
    pub(crate) fn of(kept: &Arc<MemoryStore>) -> Self {
        Self { kept: Arc::clone(kept), ..Self::default() }
    }

    /// Nothing can be committed any more, no log can be read, and nodes can neither read nor write their
    /// rows.
    pub(crate) fn cut_off(&self) {
        self.cut_off.store(true, Ordering::SeqCst);
    }

    /// All is well again.
    pub(crate) fn mend(&self) {
        self.cut_off.store(false, Ordering::SeqCst);
    }

    fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::SeqCst)
    }

    /// Reads of the log until now.
    pub(crate) fn log_reads(&self) -> usize {
        self.log_reads.load(Ordering::SeqCst)
    }

    /// The next batch is written, and nobody is told.
    pub(crate) fn lose_next_answer(&self) {
        self.loses_answer.store(true, Ordering::SeqCst);
    }
}

impl Forward for ObservedStore {
    fn target(&self) -> &dyn Store {
        &*self.kept
    }

    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        if self.is_cut_off() {
            return Box::pin(ready(Err(CommitError::Unavailable("cut off".into()))));
        }
        let lost = self.loses_answer.swap(false, Ordering::SeqCst);
        let written = self.kept.commit(batch);
        Box::pin(async move {
            written.await?;
            if lost { Err(CommitError::Unknown("the answer is lost".into())) } else { Ok(()) }
        })
    }

    fn read<'a, T: Send + 'a>(&'a self, read: Read, answer: Pending<'a, T>) -> Pending<'a, T> {
        let of_log = matches!(read, Read::Load | Read::Log);
        if (of_log || read == Read::Registry) && self.is_cut_off() {
            return Box::pin(ready(Err(ReadError::Unavailable("cut off".into()))));
        }
        if of_log {
            self.log_reads.fetch_add(1, Ordering::SeqCst);
        }
        if read == Read::Log {
            return Box::pin(async move {
                // As with a store on disk, the answer is not there at once.
                tokio::task::yield_now().await;
                answer.await
            });
        }
        answer
    }

    fn put_registry(&self, row: RegistryRow) -> Pending<'_, bool, CommitError> {
        if self.is_cut_off() {
            return Box::pin(ready(Err(CommitError::Unavailable("cut off".into()))));
        }
        self.kept.put_registry(row)
    }
}
