//! A worker in the background: a task of the runtime that says how it ends.

use std::{
    future::{Future, pending},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    Worker, WorkerError, WorkerMetrics, notice,
    replay::{REPLAYS_ONLY, ReplayFolder},
};

/// A worker that runs in the background, made by [`Worker::spawn`].
///
/// Await it to learn how the worker ends, or call [`RunningWorker::stop`]. Dropping it does not stop
/// the worker, as with a task of tokio.
#[derive(Debug)]
pub struct RunningWorker {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), WorkerError>>,
    metrics: WorkerMetrics,
}

impl Worker {
    /// Runs the worker in the background, as a task of the current tokio runtime.
    ///
    /// A worker that fails, for example because nothing is registered with it, is logged as an
    /// error, and awaiting the returned value gives the reason. If no other worker of the same
    /// client, its clones included, serves the queue, `result()` of that client's handles to runs of
    /// the queue fails with [`ClientError::WorkerFailed`](crate::ClientError::WorkerFailed) instead
    /// of waiting for a worker.
    ///
    /// # Panics
    ///
    /// If it is called outside a tokio runtime.
    pub fn spawn(self) -> RunningWorker {
        let (stop, stopped) = oneshot::channel();
        // Counted here and not in the task, so that another worker of the queue that fails meanwhile
        // is not taken for the last one.
        let serving = self.serve();
        let (queue, metrics) = (self.queue.clone(), self.metrics());
        let task = tokio::spawn(async move {
            let ended = self
                .run_until(async {
                    if stopped.await.is_err() {
                        // The handle was dropped: nothing can stop the worker any more.
                        pending::<()>().await;
                    }
                })
                .await;
            match &ended {
                Ok(()) if ReplayFolder::of_program().is_some() => serving.fail(REPLAYS_ONLY),
                // The code that shut the engine down knows it.
                Ok(()) | Err(WorkerError::EngineGone(_)) => {}
                Err(error) => {
                    tracing::error!(%queue, %error, "the worker has failed");
                    notice::without_log(format_args!(
                        "the worker of queue {queue} has failed: {error}"
                    ));
                    serving.fail(&error.to_string());
                }
            }
            ended
        });
        RunningWorker { stop, task, metrics }
    }
}

impl RunningWorker {
    /// What the worker counts.
    pub fn metrics(&self) -> WorkerMetrics {
        self.metrics.clone()
    }

    /// Stops the worker: it takes no new work, finishes the work in flight within
    /// [`Worker::shutdown_grace`], and disconnects. Returns the worker's failure if it had already
    /// ended by one.
    pub async fn stop(self) -> Result<(), WorkerError> {
        let Self { stop, task, .. } = self;
        // A worker that has ended needs no request.
        let _ended = stop.send(());
        task.await.map_err(WorkerError::Aborted)?
    }
}

impl Future for RunningWorker {
    type Output = Result<(), WorkerError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let joined = ready!(Pin::new(&mut self.task).poll(context));
        Poll::Ready(joined.map_err(WorkerError::Aborted)?)
    }
}
