//! A gate at which activities wait for the test, and the test for activities.

use tokio::sync::Semaphore;

/// Reports each arrival, and waits until the test opens the gate.
pub(crate) struct Gate {
    entered: Semaphore,
    open: Semaphore,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { entered: Semaphore::new(0), open: Semaphore::new(0) }
    }

    /// For activities.
    pub(crate) async fn pass(&self) {
        self.entered.add_permits(1);
        self.open.acquire().await.unwrap().forget();
    }

    /// For the test: one more has come to the gate.
    pub(crate) async fn entered(&self) {
        self.entered.acquire().await.unwrap().forget();
    }

    /// For the test: lets one go on.
    pub(crate) fn open(&self) {
        self.open.add_permits(1);
    }
}
