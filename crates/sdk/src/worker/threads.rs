//! The workflow threads of a worker. The id of a run selects its thread.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use abide_core::ids::RunId;
use tokio::sync::oneshot;

use super::{
    cache::Cache,
    local::Launcher,
    shared::WorkerCore,
    thread::{Acks, CachedRuns, WorkflowThread},
    thread_message::ThreadMessage,
    watchdog::Watched,
};

/// The workflow threads. Dropping this ends them.
pub(super) struct Threads(Vec<PoolThread>);

struct PoolThread {
    orders: mpsc::Sender<ThreadMessage>,
    watched: Arc<Watched>,
    end: Option<oneshot::Receiver<Acks>>,
}

impl Threads {
    /// Starts `count` threads, which together keep at most `cached_runs` runs in memory.
    pub(super) fn start(
        shared: &Arc<WorkerCore>,
        count: usize,
        cached_runs: usize,
    ) -> io::Result<Self> {
        let count = count.max(1);
        let mut threads = Self(Vec::with_capacity(count));
        for number in 0..count {
            let limit = cached_runs / count + usize::from(number < cached_runs % count);
            threads.0.push(PoolThread::start(shared, number, limit)?);
        }
        Ok(threads)
    }

    /// Sends an order to the thread of the run.
    pub(super) fn order(&self, run: RunId, order: ThreadMessage) {
        if let Some(worker) = self.of(run) {
            // The send cannot fail: a thread ends only with the worker.
            drop(worker.orders.send(order));
        }
    }

    /// Sends an order to the thread of the run when it is ready.
    pub(super) fn order_later(
        &self,
        run: RunId,
        order: impl Future<Output = ThreadMessage> + Send + 'static,
    ) {
        let Some(worker) = self.of(run) else { return };
        let orders = worker.orders.clone();
        tokio::spawn(async move {
            // The send fails only if the thread has ended.
            drop(orders.send(order.await));
        });
    }

    fn of(&self, run: RunId) -> Option<&PoolThread> {
        let id = u128::from_be_bytes(*run.as_bytes());
        let thread = usize::try_from(id % self.0.len() as u128).ok();
        thread.and_then(|thread| self.0.get(thread))
    }

    /// Warns about threads that are blocked.
    pub(super) fn check(&self, deadline: Duration) {
        for worker in &self.0 {
            worker.watched.check(deadline);
        }
    }

    /// Ends the threads after their pending orders; returns the unacknowledged reports.
    pub(super) async fn close(mut self) -> Vec<Acks> {
        let mut acks = Vec::new();
        for worker in &mut self.0 {
            // The send fails only if the thread has ended.
            drop(worker.orders.send(ThreadMessage::Close));
            if let Some(end) = worker.end.take() {
                acks.extend(end.await);
            }
        }
        acks
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for worker in &self.0 {
            // The send fails only if the thread has ended.
            drop(worker.orders.send(ThreadMessage::Close));
        }
    }
}

impl PoolThread {
    fn start(shared: &Arc<WorkerCore>, number: usize, cached_runs: usize) -> io::Result<Self> {
        let (orders, receiver) = mpsc::channel();
        let (ended, end) = oneshot::channel();
        let watched = Arc::<Watched>::default();
        let (shared, own, its) = (Arc::clone(shared), orders.clone(), Arc::clone(&watched));
        thread::Builder::new().name(format!("workflow-{number}")).spawn(move || {
            let thread = WorkflowThread {
                launcher: Launcher { shared: Arc::clone(&shared), orders: own.clone(), started: 0 },
                cached: CachedRuns { metrics: shared.metrics.clone(), count: 0 },
                shared,
                orders: receiver,
                own,
                paused: HashMap::new(),
                cache: Cache::new(cached_runs),
                watched: its,
                acks: Acks::new(),
            };
            // The send fails only if the worker was dropped and no longer waits for the thread.
            drop(ended.send(thread.run()));
        })?;
        Ok(Self { orders, watched, end: Some(end) })
    }
}
