//! The engine of a test environment, which can crash and restart with what it had stored.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use abide_core::{
    dispatch::{QueueKey, Worker},
    limits::Limits,
    operation::{AnyAnswer, AnyOperation},
};
use abide_embedded::{Builder, Embedded, clock::ManualClock};
use abide_engine::Gauge;
use abide_sdk::transport::{AnswerFuture, Session, Transport};

use crate::lock::lock;

/// An engine on an in-memory store, which outlives it.
pub(crate) struct TestEngine {
    builder: Builder,
    current: Mutex<Embedded>,
}

impl TestEngine {
    pub(crate) async fn start(clock: Arc<ManualClock>) -> Self {
        // Shards must not wake up on their own: all due times are in memory, and nothing is swept.
        let (near_window, sweep_interval) = (Duration::MAX, Duration::MAX);
        let limits = Limits { near_window, sweep_interval, ..Limits::default() };
        let builder = Embedded::builder().clock(clock).limits(limits);
        let current = Mutex::new(builder.clone().in_memory().await);
        Self { builder, current }
    }

    /// Loses everything that is only in memory. The new engine takes the shards before the old one
    /// is gone, so there is always an engine for callers.
    pub(crate) async fn crash(&self) {
        let next = self.lock().successor(self.builder.clone());
        if let Some(next) = next.await {
            let lost = std::mem::replace(&mut *self.lock(), next);
            drop(lost);
        }
    }

    pub(crate) fn gauge(&self) -> Gauge {
        self.lock().engine().gauge().clone()
    }

    fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(self.lock().client().transport())
    }

    fn lock(&self) -> MutexGuard<'_, Embedded> {
        lock(&self.current)
    }
}

/// Forwards to the current engine.
impl Transport for TestEngine {
    fn ask(&self, operation: AnyOperation) -> AnswerFuture<'_, AnyAnswer> {
        let transport = self.transport();
        Box::pin(async move { transport.ask(operation).await })
    }

    fn connect(
        &self,
        worker: Worker,
        takes: Vec<(QueueKey, usize)>,
    ) -> AnswerFuture<'_, Box<dyn Session>> {
        let transport = self.transport();
        Box::pin(async move { transport.connect(worker, takes).await })
    }
}
