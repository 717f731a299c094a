//! Starts, and calls that wait for the code of a run. They warn if no worker takes the run's task, and
//! calls fail if the worker that should run it has failed: without a worker nothing happens, and
//! that in silence.

use std::{convert::Infallible, future::pending, time::Duration};

use abide_core::{
    ids::{RunId, WorkflowKey},
    operation::{self, Begin, Describe, RunTarget},
    run::{Description, Liveness},
    visible::visible,
};
use tokio::{runtime::Handle, time::sleep};

use super::{Client, ClientError, queue_checks::Taken};
use crate::{transport, worker::notice};

/// A task that waits twice this long for a worker is worth a warning.
const TAKEN_SOON: Duration = Duration::from_secs(2);

impl Client {
    /// Awaits a call whose answer comes from the code of this run.
    pub(super) async fn with_worker<T>(
        &self,
        target: &RunTarget,
        call: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        self.with_worker_of(target, None, call).await
    }

    /// The same for a call that starts the run with this queue, unless one is open.
    pub(super) async fn with_worker_of<T>(
        &self,
        target: &RunTarget,
        new: Option<&str>,
        call: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        tokio::select! {
            biased;
            result = call => result,
            error = self.worker_failed(target, new) => Err(error),
            never = self.warn_without_worker(target) => match never {},
        }
    }

    /// Warns if no worker takes the task of the run for a while. Never returns.
    async fn warn_without_worker(&self, target: &RunTarget) -> Infallible {
        let describe = || async { self.described(target).await };
        if let Some(Err(waiting)) = taken(describe).await {
            self.warn(target, &waiting.queue);
        }
        pending().await
    }

    /// Looks for a worker of a run that is about to be started, unless that was done for its queue
    /// lately. Costs a lookup and nothing else, because each start does it.
    pub(super) fn start_check(&self, start: &operation::Start) -> Option<StartCheck> {
        if start.begin != Begin::AtOnce {
            return None;
        }
        let queue = &start.spec.queue;
        self.workers().checks().begin(&start.workflow.namespace, queue).then(|| StartCheck {
            client: self.clone(),
            queue: queue.clone(),
            workflow: start.workflow.clone(),
            answer: None,
        })
    }

    /// Warns that no worker takes the run's task, once for its queue.
    fn warn(&self, target: &RunTarget, queue: &str) {
        let namespace = &target.workflow.namespace;
        if self.workers().checks().warn(namespace, queue) {
            let (workflow, reason) = (&target.workflow, self.workers().reason(namespace, queue));
            tracing::warn!(%workflow, %queue, reason, "no worker takes the run's task");
            let (workflow, queue) = (notice::shown(workflow), visible(queue));
            notice::without_log(format_args!(
                "workflow {workflow}: no worker takes the run's task from the queue {queue}: {reason}"
            ));
        }
    }

    /// Waits until the last worker of this client that served the run's queue has failed. While no run
    /// is open, that is the queue of the one that is about to be started, if there is one.
    async fn worker_failed(&self, target: &RunTarget, new: Option<&str>) -> ClientError {
        let queue = || async {
            let open = self.described(target).await.filter(|run| run.closed_at.is_none());
            open.map(|run| run.queue).or_else(|| new.map(ToOwned::to_owned))
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

/// Looks whether a worker takes the task of a run that was just started. Dropped before that, it lets
/// the next start of the queue look.
pub(super) struct StartCheck {
    client: Client,
    queue: String,
    workflow: WorkflowKey,
    answer: Option<Taken>,
}

impl StartCheck {
    /// Looks in the background, as long as the program's runtime exists.
    pub(super) fn look(self, run: RunId) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(self.looked(run));
        }
    }

    async fn looked(mut self, run: RunId) {
        let target = RunTarget { workflow: self.workflow.clone(), run: Some(run) };
        let transport = self.client.transport();
        // Without interceptors, because it is no call of the program, and without a retry, because the
        // next start looks again.
        let describe = || async {
            let described = transport::ask(&**transport, Describe { target: target.clone() });
            described.await.ok().map(|run| *run)
        };
        self.answer = taken(describe).await.map(|taken| match taken {
            Ok(()) => Taken::Yes,
            Err(waiting) => {
                self.client.warn(&target, &waiting.queue);
                Taken::No
            }
        });
    }
}

impl Drop for StartCheck {
    fn drop(&mut self) {
        let checks = self.client.workers().checks();
        checks.end(&self.workflow.namespace, &self.queue, self.answer);
    }
}

/// Whether a worker takes the task of a run soon; none if the run cannot be described.
async fn taken<F>(describe: impl Fn() -> F) -> Option<Result<(), WaitingTask>>
where
    F: Future<Output = Option<Description>>,
{
    sleep(TAKEN_SOON).await;
    let Some(before) = waiting(describe().await?) else { return Some(Ok(())) };
    sleep(TAKEN_SOON).await;
    // The same task still waits if no event has come since.
    let now = waiting(describe().await?).filter(|now| now.last_event == before.last_event);
    Some(now.map_or(Ok(()), Err))
}

/// A task that waits for a worker.
struct WaitingTask {
    last_event: u64,
    queue: String,
}

/// The task of a run, if it waits for a worker and none has failed it.
fn waiting(run: Description) -> Option<WaitingTask> {
    let waits = run.liveness == Liveness::TaskWaiting && run.trouble.is_none();
    waits.then_some(WaitingTask { last_event: run.last_event, queue: run.queue })
}
