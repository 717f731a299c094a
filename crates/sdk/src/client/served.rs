//! Calls that wait for the code of a run. They fail if the worker that should run it has failed, and
//! warn if none takes the run's task: without a worker they would wait forever, in silence.

use std::{convert::Infallible, future::pending, time::Duration};

use abide_core::{
    operation::{Describe, RunTarget},
    run::{Description, Liveness},
};
use tokio::time::sleep;

use super::{Client, ClientError};

/// A task that waits twice this long for a worker is worth a warning.
const TAKEN_SOON: Duration = Duration::from_secs(2);

impl Client {
    /// Awaits a call whose answer comes from the code of this run.
    pub(super) async fn with_worker<T>(
        &self,
        target: &RunTarget,
        call: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        tokio::select! {
            biased;
            result = call => result,
            error = self.worker_failed(target) => Err(error),
            never = self.warn_without_worker(target) => match never {},
        }
    }

    /// Warns once if no worker takes the task of the run for a while. Never returns.
    async fn warn_without_worker(&self, target: &RunTarget) -> Infallible {
        sleep(TAKEN_SOON).await;
        if let Some((before, _)) = self.untaken(target).await {
            sleep(TAKEN_SOON).await;
            // The same task still waits if no event has come since.
            if let Some((now, queue)) = self.untaken(target).await
                && now == before
            {
                tracing::warn!(
                    workflow = %target.workflow,
                    %queue,
                    "no worker takes the run's task: check that a worker serves this queue and \
                     namespace, is connected to the same engine, and is not busy"
                );
            }
        }
        pending().await
    }

    /// The run's last event and its queue, if its task waits for a worker and none has failed it.
    async fn untaken(&self, target: &RunTarget) -> Option<(u64, String)> {
        let run = self.described(target).await?;
        let untaken = run.liveness == Liveness::TaskWaiting && run.trouble.is_none();
        untaken.then_some((run.last_event, run.queue))
    }

    /// Waits until the last worker of this client that served the run's queue has failed.
    async fn worker_failed(&self, target: &RunTarget) -> ClientError {
        let queue = || async {
            let run = self.described(target).await?;
            run.closed_at.is_none().then_some(run.queue)
        };
        let failed = self.workers().failure(&target.workflow.namespace, queue).await;
        ClientError::WorkerFailed { queue: failed.queue, reason: failed.reason.to_string() }
    }

    /// The run; none if it cannot be described, and then the call that waits for it fails too.
    async fn described(&self, target: &RunTarget) -> Option<Description> {
        let target = target.clone();
        // Boxed, because it is rarely used and every future that waits for a run would hold it.
        Box::pin(self.ask(Describe { target })).await.ok().map(|run| *run)
    }
}
