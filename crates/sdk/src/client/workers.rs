//! The workers of a client, in this process: which queues they serve, and which queue lost its last
//! worker by a failure. Who waits for a run of such a queue is told instead of waiting forever.
//! Workers of other processes are not known here, only whether a task was taken (`queue_checks`).

use std::{collections::BTreeMap, sync::Arc};

use abide_core::ids::NamespaceId;
use tokio::sync::watch;

use super::queue_checks::QueueChecks;

/// The workers of a client and its clones.
#[derive(Clone, Default)]
pub(crate) struct ClientWorkers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    services: watch::Sender<BTreeMap<ServedQueue, Service>>,
    checks: QueueChecks,
}

/// A namespace and a queue in it.
type ServedQueue = (NamespaceId, String);

#[derive(Default)]
struct Service {
    running: usize,
    /// Why the last worker failed; none while one runs.
    failed: Option<Arc<str>>,
}

/// A worker that serves a queue, until this is dropped.
pub(crate) struct Serving {
    workers: ClientWorkers,
    place: ServedQueue,
    /// Why it ends, if it ends by a failure.
    failure: Option<Arc<str>>,
}

impl ClientWorkers {
    /// Counts a worker of this queue. An earlier failure is forgotten.
    pub(crate) fn serve(&self, namespace: NamespaceId, queue: String) -> Serving {
        let place = (namespace, queue);
        self.0.services.send_modify(|services| {
            let service = services.entry(place.clone()).or_default();
            service.running += 1;
            service.failed = None;
        });
        Serving { workers: self.clone(), place, failure: None }
    }

    /// What starts know of the queues.
    pub(super) fn checks(&self) -> &QueueChecks {
        &self.0.checks
    }

    /// Why a task of this queue may wait, as far as this client knows.
    pub(super) fn reason(&self, namespace: &NamespaceId, queue: &str) -> String {
        let services = self.0.services.borrow();
        let mut here = services.iter().filter(|((of, _), _)| of == namespace);
        match here.clone().find(|((_, served), _)| served == queue) {
            Some((_, Service { failed: Some(reason), .. })) => {
                format!("its last worker in this process has failed: {reason}")
            }
            Some(_) => {
                "the workers of this process that serve the queue are busy or not connected".into()
            }
            None => match here.find(|(_, service)| service.running > 0) {
                Some(((_, other), _)) => format!(
                    "the client's workers in this process serve other queues, such as {other}"
                ),
                None => "the client has no worker in this process; if another process has one, \
                         check that it serves this queue and namespace, is connected to the same \
                         engine, and is not busy"
                    .into(),
            },
        }
    }

    /// Returns why no worker serves the queue of a run. Waits until one has failed, perhaps forever.
    /// `queue_of_run` is asked only if a queue of the namespace has no worker after a failure.
    pub(super) async fn failure<F>(
        &self,
        namespace: &NamespaceId,
        mut queue_of_run: impl FnMut() -> F,
    ) -> FailedWorker
    where
        F: Future<Output = Option<String>>,
    {
        let mut services = self.0.services.subscribe();
        loop {
            let failed = |services: &BTreeMap<ServedQueue, Service>| {
                services
                    .iter()
                    .any(|((of, _), service)| of == namespace && service.failed.is_some())
            };
            if services.wait_for(failed).await.is_err() {
                // A client holds the sender as long as it waits here.
                std::future::pending::<()>().await;
            }
            if let Some(queue) = queue_of_run().await {
                let place = (namespace.clone(), queue);
                let reason =
                    services.borrow().get(&place).and_then(|service| service.failed.clone());
                if let Some(reason) = reason {
                    return FailedWorker { queue: place.1, reason };
                }
            }
            // Another queue has failed; the next change may be about this one.
            drop(services.changed().await);
        }
    }
}

/// The failure of the last worker of a queue.
pub(super) struct FailedWorker {
    pub(super) queue: String,
    pub(super) reason: Arc<str>,
}

impl Serving {
    /// Ends the service by a failure, which counts if no other worker serves the queue.
    pub(crate) fn fail(mut self, reason: &str) {
        self.failure = Some(reason.into());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.failure.get_or_insert_with(|| "the worker has panicked".into());
        }
        let failure = self.failure.take();
        // One change, so that of workers which fail at the same time one is the last.
        self.workers.0.services.send_modify(|services| {
            let Some(service) = services.get_mut(&self.place) else { return };
            service.running -= 1;
            if service.running == 0 {
                service.failed = failure;
                if service.failed.is_none() {
                    services.remove(&self.place);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, ready};

    use futures_util::FutureExt as _;

    use super::*;

    /// Why the queue has no worker, if one has failed.
    fn failure(workers: &ClientWorkers, queue: &str) -> Option<String> {
        let of_run = || -> Ready<_> { ready(Some(queue.to_owned())) };
        let failed = workers.failure(&"default".into(), of_run).now_or_never()?;
        assert_eq!(failed.queue, queue);
        Some(failed.reason.to_string())
    }

    fn serve(workers: &ClientWorkers, queue: &str) -> Serving {
        workers.serve("default".into(), queue.into())
    }

    #[test]
    fn the_failure_of_the_last_worker_is_told_for_its_queue_only() {
        let workers = ClientWorkers::default();
        let (first, last) = (serve(&workers, "orders"), serve(&workers, "orders"));
        first.fail("first");
        assert_eq!(failure(&workers, "orders"), None, "the other one works");
        last.fail("last");
        assert_eq!(failure(&workers, "orders").as_deref(), Some("last"));
        assert_eq!(failure(&workers, "letters"), None);
        let namespace = "elsewhere".into();
        let elsewhere = workers.failure(&namespace, || ready(Some("orders".into())));
        assert!(elsewhere.now_or_never().is_none());
    }

    #[test]
    fn of_workers_that_fail_at_the_same_time_one_is_the_last() {
        for _ in 0..200 {
            let workers = ClientWorkers::default();
            let both = [serve(&workers, "orders"), serve(&workers, "orders")];
            let threads = both.map(|serving| std::thread::spawn(move || serving.fail("broken")));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(failure(&workers, "orders").as_deref(), Some("broken"));
        }
    }

    #[test]
    fn a_panic_is_a_failure() {
        let workers = ClientWorkers::default();
        let serving = serve(&workers, "orders");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _serving = serving;
            panic!("a bug");
        }));
        assert!(panicked.is_err());
        assert_eq!(failure(&workers, "orders").as_deref(), Some("the worker has panicked"));
    }

    #[test]
    fn the_reason_why_a_task_waits_names_what_this_client_knows() {
        let workers = ClientWorkers::default();
        let check = |expected: &str| {
            let reason = workers.reason(&"default".into(), "orders");
            assert!(reason.contains(expected), "{reason}");
        };
        check("no worker in this process");
        let elsewhere = workers.serve("elsewhere".into(), "orders".into());
        check("no worker in this process");
        drop(elsewhere);
        let other = serve(&workers, "letters");
        check("serve other queues, such as letters");
        let serving = serve(&workers, "orders");
        check("busy or not connected");
        serving.fail("out of threads");
        check("has failed: out of threads");
        drop(other);
    }

    #[test]
    fn a_new_worker_and_an_end_without_failure_leave_nothing_to_tell() {
        let workers = ClientWorkers::default();
        serve(&workers, "orders").fail("broken");
        drop(serve(&workers, "orders"));
        assert_eq!(failure(&workers, "orders"), None);
        assert!(workers.0.services.borrow().is_empty());
    }
}
