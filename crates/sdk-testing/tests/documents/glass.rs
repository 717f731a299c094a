//! An engine in memory that the test can look into.

use std::sync::Arc;

use abide::{Timestamp, Workflow};
use abide_embedded::{Embedded, clock::ManualClock};
use abide_store::memory::MemoryStore;

use crate::site::{Rows, Working};

/// An engine in memory whose store the test can look into, and whose time it moves.
pub(crate) struct Glass {
    store: Arc<MemoryStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) engine: Embedded,
}

impl Glass {
    pub(crate) async fn open() -> Self {
        let store = Arc::new(MemoryStore::default());
        let now = Timestamp::from_unix_millis(1_800_000_000_000);
        let clock = Arc::new(ManualClock::new(now));
        let engine = Embedded::builder().clock(clock.clone()).start(store.clone()).await;
        Self { store, clock, engine }
    }

    pub(crate) fn work<W: Workflow>(&self) -> Working {
        Working::start(self.engine.worker().build_id("test").workflow::<W>())
    }

    /// When timers of the workflow are due, as the store has it.
    pub(crate) async fn due(&self, workflow: &str) -> Vec<Timestamp> {
        let rows = Rows::of(&*self.store, workflow).await;
        rows.due.into_iter().map(|row| row.due).collect()
    }

    /// How many rows there are of due times, and of waits.
    pub(crate) async fn rows(&self, workflow: &str) -> (usize, usize) {
        let rows = Rows::of(&*self.store, workflow).await;
        (rows.due.len(), rows.waits.len())
    }
}
