//! Workers of a test environment: each can be killed, and restart as a new process would.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use abide_sdk::{Worker, worker::WorkerError};
use tokio::task::JoinHandle;

use crate::{lock::lock, observed::Observed, time::Time};

/// A worker of a test environment. Dropping this has no effect on the worker.
#[derive(Clone, Debug)]
pub struct TestWorker(pub(crate) Arc<Post>);

impl TestWorker {
    /// Kills the worker, as a power failure would: work in progress is lost.
    pub async fn kill(&self) {
        self.0.stop().await;
    }

    /// Kills the worker and restarts it with an empty cache. Returns when it can take work.
    pub async fn restart(&self) -> Result<(), WorkerError> {
        self.0.stop().await;
        self.0.start().await
    }
}

/// A worker as it was configured, and the running one.
pub(crate) struct Post {
    worker: Worker,
    transport: Arc<Observed>,
    time: Arc<Time>,
    running: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a worker of the test")
    }
}

impl Post {
    pub(crate) fn new(worker: Worker, transport: Arc<Observed>, time: Arc<Time>) -> Arc<Self> {
        Arc::new(Self { worker, transport, time, running: Mutex::default() })
    }

    /// Starts the worker; returns when it can take work.
    pub(crate) async fn start(&self) -> Result<(), WorkerError> {
        let mut working = self.transport.await_work();
        let mut running = Box::pin(self.worker.clone().run());
        tokio::select! {
            ended = &mut running => return ended,
            _ = working.wait_for(|working| *working) => {}
        }
        let running = tokio::spawn(async move {
            if let Err(error) = running.await {
                tracing::error!(%error, "a worker of the test ended");
            }
        });
        self.end(Some(running));
        Ok(())
    }

    /// Kills the worker.
    pub(crate) async fn stop(&self) {
        if let Some(running) = self.end(None) {
            // The task was aborted, which is its error.
            let _cut_off = running.await;
        }
    }

    /// Kills the worker and restarts it; time stands still meanwhile.
    fn lose(self: Arc<Self>) {
        let work = self.time.begin();
        tokio::spawn(async move {
            self.stop().await;
            if let Err(error) = self.start().await {
                tracing::error!(%error, "a worker of the test does not come back");
            }
            drop(work);
        });
    }

    /// Aborts the running worker, if any, and replaces it.
    fn end(&self, next: Option<JoinHandle<()>>) -> Option<JoinHandle<()>> {
        let mut running = lock(&self.running);
        let before = std::mem::replace(&mut *running, next);
        if let Some(before) = &before {
            before.abort();
        }
        before
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        self.end(None);
    }
}

/// Lets code inside a worker kill it.
#[derive(Clone, Default)]
pub(crate) struct Lifeline(Arc<OnceLock<Weak<Post>>>);

impl Lifeline {
    pub(crate) fn tie(&self, post: &Arc<Post>) {
        // It is set once, by its creator.
        let _tied = self.0.set(Arc::downgrade(post));
    }

    pub(crate) fn cut(&self) {
        if let Some(post) = self.0.get().and_then(Weak::upgrade) {
            post.lose();
        }
    }
}
