//! The connection of one node to the in-memory store that all nodes share. Once it is cut, no request
//! reaches the store and none is answered.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use abide_store::{
    Batch, CommitError, Pending, Store,
    forward::{Forward, Read},
    memory::MemoryStore,
    rows::RegistryRow,
};

pub(crate) struct Cable {
    store: Arc<MemoryStore>,
    cut: AtomicBool,
}

impl Cable {
    pub(crate) fn new(store: &Arc<MemoryStore>) -> Self {
        Self { store: Arc::clone(store), cut: AtomicBool::new(false) }
    }

    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }

    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }
}

impl Forward for Cable {
    fn target(&self) -> &dyn Store {
        &*self.store
    }

    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        if self.is_cut() { Box::pin(pending()) } else { self.store.commit(batch) }
    }

    fn read<'a, T: Send + 'a>(&'a self, _read: Read, answer: Pending<'a, T>) -> Pending<'a, T> {
        if self.is_cut() { Box::pin(pending()) } else { answer }
    }

    fn put_registry(&self, row: RegistryRow) -> Pending<'_, bool, CommitError> {
        if self.is_cut() { Box::pin(pending()) } else { self.store.put_registry(row) }
    }
}
