//! The engine of a test environment, which can crash and restart with what it had stored.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use abide_core::{
    call::{Call, CallReply, HistoryPage, HistoryRequest, QueueKey, RunTarget, Worker},
    limits::Limits,
    list::{RunFilter, RunRow, WaitFilter, WaitRow},
    node::NodeListing,
    run::Description,
};
use abide_embedded::{Builder, Embedded, clock::ManualClock};
use abide_engine::Gauge;
use abide_sdk::transport::{Answer, Session, Transport};

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
        // No code panics while the lock is held, so its data is consistent.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forwards to the current engine.
impl Transport for TestEngine {
    fn call(&self, call: Call) -> Answer<'_, CallReply> {
        let transport = self.transport();
        Box::pin(async move { transport.call(call).await })
    }

    fn describe(&self, target: RunTarget) -> Answer<'_, Description> {
        let transport = self.transport();
        Box::pin(async move { transport.describe(target).await })
    }

    fn history(&self, request: HistoryRequest) -> Answer<'_, HistoryPage> {
        let transport = self.transport();
        Box::pin(async move { transport.history(request).await })
    }

    fn runs(&self, filter: RunFilter, limit: usize) -> Answer<'_, Vec<RunRow>> {
        let transport = self.transport();
        Box::pin(async move { transport.runs(filter, limit).await })
    }

    fn count_runs(&self, filter: RunFilter) -> Answer<'_, u64> {
        let transport = self.transport();
        Box::pin(async move { transport.count_runs(filter).await })
    }

    fn waits(&self, filter: WaitFilter, limit: usize) -> Answer<'_, Vec<WaitRow>> {
        let transport = self.transport();
        Box::pin(async move { transport.waits(filter, limit).await })
    }

    fn nodes(&self) -> Answer<'_, Vec<NodeListing>> {
        let transport = self.transport();
        Box::pin(async move { transport.nodes().await })
    }

    fn connect(
        &self,
        worker: Worker,
        takes: Vec<(QueueKey, usize)>,
    ) -> Answer<'_, Box<dyn Session>> {
        let transport = self.transport();
        Box::pin(async move { transport.connect(worker, takes).await })
    }
}
