//! Workers that can be stopped and killed, a clock that stands still, and ways to wait without
//! sleeping.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use abide::client::HistoryEvent;
use abide::{Timestamp, Worker, WorkerError, WorkflowHandle};
use abide_core::event::Fact;
use abide_embedded::clock::{Clock, ManualClock};
use tokio::{
    sync::{Semaphore, oneshot},
    task::JoinHandle,
};

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A clock that only moves when the test moves it.
pub(crate) fn manual_clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_unix_millis(1_800_000_000_000)))
}

pub(crate) fn advance(clock: &ManualClock, by: Duration) {
    clock.move_to(clock.now().saturating_add(by));
}

/// A worker in a background task.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), WorkerError>>,
}

impl Running {
    /// Names the build explicitly, so that no test spends its time hashing the executable.
    pub(crate) fn start(worker: Worker) -> Self {
        Self::as_build("test", worker)
    }

    pub(crate) fn as_build(build: &str, worker: Worker) -> Self {
        let (stop, stopped) = oneshot::channel();
        let worker = worker.build_id(build).run_until(async move { drop(stopped.await) });
        Self { stop, task: tokio::spawn(worker) }
    }

    /// Asks the worker to stop, and waits until it has.
    pub(crate) async fn stop(self) {
        self.begin_stop().await.unwrap().unwrap();
    }

    /// Asks the worker to stop.
    pub(crate) fn begin_stop(self) -> JoinHandle<Result<(), WorkerError>> {
        self.stop.send(()).unwrap();
        self.task
    }

    /// Aborts the worker.
    pub(crate) async fn kill(self) {
        self.task.abort();
        drop(self.task.await);
    }
}

/// Follows the history until it has such an event.
pub(crate) async fn until<W>(
    handle: &WorkflowHandle<W>,
    what: impl Fn(&Fact) -> bool,
) -> Vec<HistoryEvent> {
    let mut follower = handle.follow_history();
    let mut history = Vec::new();
    while !history.iter().any(|event: &HistoryEvent| what(event.fact())) {
        history.extend(follower.next().await.unwrap().expect("the run closed before"));
    }
    history
}

/// Blocks activities until the test lets them continue.
#[derive(Clone)]
pub(crate) struct Gate {
    entered: Arc<Semaphore>,
    open: Arc<Semaphore>,
    visits: Arc<AtomicU32>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        let closed = || Arc::new(Semaphore::new(0));
        Self { entered: closed(), open: closed(), visits: Arc::default() }
    }

    /// For the activity: waits until the gate opens.
    pub(crate) async fn pass(&self) {
        self.visits.fetch_add(1, Ordering::SeqCst);
        self.entered.add_permits(1);
        self.open.acquire().await.unwrap().forget();
    }

    /// For the test: waits until an activity arrives at the gate.
    pub(crate) async fn visitor(&self) {
        self.entered.acquire().await.unwrap().forget();
    }

    /// For the test: lets one activity through.
    pub(crate) fn open(&self) {
        self.open.add_permits(1);
    }

    /// Number of activities that have arrived at the gate.
    pub(crate) fn visits(&self) -> u32 {
        self.visits.load(Ordering::SeqCst)
    }
}
