//! An engine, workers and a client in the test's own process.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use abide_core::{limits::Limits, time::Timestamp};
use abide_embedded::{Embedded, clock::ManualClock};
use abide_sdk::{
    ActivityContext, ActivityError, BoxError, Client, Data, Worker, activity::Activity,
    worker::WorkerError,
};
use tokio::task::{AbortHandle, JoinSet};

use crate::{held::Held, observed::Observed, time::Time};

/// The first moment of every environment, so that a test is the same on every day: 2025-01-01, 00:00
/// UTC.
const BEGINNING_SECONDS: i64 = 1_735_689_600;

/// A change of a worker before it begins.
type Change = Box<dyn Fn(Worker) -> Worker + Send + Sync>;

/// A whole engine in memory, for one test.
///
/// Time stands still while anything is under way: a workflow task, an attempt of an activity, a call,
/// or the test itself. While the test waits for an answer, such as the result of a workflow, and
/// nothing is under way, time skips to the next due moment. So a month of sleep takes milliseconds,
/// and no activity is ever overtaken by its timeout.
///
/// A test that waits in vain ends: if for some seconds nothing is under way and nothing is due, or if
/// time has skipped thousands of times and brought nothing but failures, its calls fail with
/// [`NoAnswer`](abide_sdk::client::ClientError::NoAnswer), which names the open runs and what keeps
/// them.
///
/// To drop the environment is to end everything in it.
pub struct TestEnvironment {
    engine: Embedded,
    time: Arc<Time>,
    held: Held,
    changes: Mutex<Vec<Change>>,
    workers: Mutex<JoinSet<()>>,
    mover: AbortHandle,
}

impl TestEnvironment {
    /// An environment without workers. Needs a tokio runtime.
    pub async fn new() -> Self {
        let beginning = Timestamp::new(BEGINNING_SECONDS, 0).unwrap_or(Timestamp::EPOCH);
        let clock = Arc::new(ManualClock::new(beginning));
        // Shards must not wake for their own sake: all due times are in memory at once, and nothing is
        // swept, because a store in memory outlives no engine.
        let (near_window, sweep_interval) = (Duration::MAX, Duration::MAX);
        let limits = Limits { near_window, sweep_interval, ..Limits::default() };
        let builder = Embedded::builder().clock(clock.clone()).limits(limits);
        let engine = builder.in_memory().await;
        let time = Arc::new(Time::new(clock, engine.engine().gauge().clone()));
        let mover = tokio::spawn(Arc::clone(&time).pass()).abort_handle();
        let (changes, workers) = (Mutex::default(), Mutex::default());
        Self { engine, time, held: Held::default(), changes, workers, mover }
    }

    /// Adds a worker: `env.worker(|worker| worker.workflow::<Order>().activity(charge)).await?`.
    /// Returns when it can take work.
    pub async fn worker(&self, set_up: impl FnOnce(Worker) -> Worker) -> Result<(), WorkerError> {
        let transport = Arc::new(self.observed());
        let mut working = transport.working();
        // To name the build by a hash of the executable takes time and is of no use here.
        let worker = Worker::new(&Client::new(transport)).build_id("test");
        let mut worker = set_up(worker);
        for change in lock(&self.changes).iter() {
            worker = change(worker);
        }
        let mut running = Box::pin(worker.run());
        tokio::select! {
            ended = &mut running => return ended,
            _ = working.wait_for(|working| *working) => {}
        }
        lock(&self.workers).spawn(async move {
            if let Err(error) = running.await {
                tracing::error!(%error, "a worker of the test ended");
            }
        });
        Ok(())
    }

    /// A client of the engine. While one of its calls waits, time may skip.
    pub fn client(&self) -> Client {
        Client::new(Arc::new(self.observed()))
    }

    /// The present of the engine.
    pub fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// Lets this much time pass. What becomes due on the way happens in its order, and at its time;
    /// when this returns, all of it has been dealt with.
    pub async fn skip(&self, duration: Duration) {
        self.time.skip(duration).await;
    }

    /// Puts other code in the place of an activity, in all workers that are added after this.
    pub fn replace_activity<A, F, R, E>(&self, activity: A, fake: F)
    where
        A: Activity<State: Send + Sync, Input: Send, Output: Data>,
        F: Fn(ActivityContext, A::Input) -> R + Send + Sync + 'static,
        R: Future<Output = Result<A::Output, E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        let (definition, fake) = (activity.definition(), Arc::new(fake));
        let change = move |worker: Worker| {
            let fake = Arc::clone(&fake);
            worker.replace_activity(definition, move |context, input| fake(context, input))
        };
        lock(&self.changes).push(Box::new(change));
    }

    /// Lets an activity never answer, in all workers that are added after this: for tests of its
    /// timeouts. Time passes over it.
    pub fn hang_activity<A>(&self, activity: A)
    where
        A: Activity<State: Send + Sync, Input: Send, Output: Data + Send>,
    {
        let held = self.held.clone();
        self.replace_activity(activity, move |context, _| {
            held.let_go(context.info());
            std::future::pending::<Result<A::Output, ActivityError>>()
        });
    }

    fn observed(&self) -> Observed {
        let client = self.engine.client();
        Observed::new(Arc::clone(client.transport()), &self.time, &self.held)
    }
}

impl Drop for TestEnvironment {
    fn drop(&mut self) {
        self.mover.abort();
    }
}

impl std::fmt::Debug for TestEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestEnvironment").field("now", &self.now()).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What a panic of user code leaves behind is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
