//! Workers of a test environment: each can be lost where it stands, and come back as a new process would.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use abide_sdk::{Worker, worker::WorkerError};
use tokio::task::JoinHandle;

use crate::{observed::Observed, time::Time};

/// A worker of a test environment. To drop this leaves the worker alone.
#[derive(Clone, Debug)]
pub struct TestWorker(pub(crate) Arc<Post>);

impl TestWorker {
    /// Ends the worker where it stands, as a power cut would: what it was doing is lost.
    pub async fn kill(&self) {
        self.0.stop().await;
    }

    /// Ends the worker where it stands, and lets it come back with an empty memory. Returns when it can
    /// take work.
    pub async fn restart(&self) -> Result<(), WorkerError> {
        self.0.stop().await;
        self.0.start().await
    }
}

/// The place of a worker: the worker as it was set up, and the one that runs.
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

    /// Ends the worker where it stands.
    pub(crate) async fn stop(&self) {
        if let Some(running) = self.end(None) {
            // It was cut off, which is what it tells.
            let _cut_off = running.await;
        }
    }

    /// Loses the worker, and lets it come back; time stands still meanwhile.
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

    /// Cuts off what runs, if anything does, and puts this in its place.
    fn end(&self, next: Option<JoinHandle<()>>) -> Option<JoinHandle<()>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
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

/// How what runs inside a worker loses it.
#[derive(Clone, Default)]
pub(crate) struct Lifeline(Arc<OnceLock<Weak<Post>>>);

impl Lifeline {
    pub(crate) fn tie(&self, post: &Arc<Post>) {
        // It is tied once, by whoever made it.
        let _tied = self.0.set(Arc::downgrade(post));
    }

    /// Loses the worker.
    pub(crate) fn cut(&self) {
        if let Some(post) = self.0.get().and_then(Weak::upgrade) {
            post.lose();
        }
    }
}
