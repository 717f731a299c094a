//! An engine, workers and a client in the test's own process.

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use abide_core::time::Timestamp;
use abide_embedded::clock::ManualClock;
use abide_sdk::{
    ActivityContext, ActivityError, BoxError, Client, Codecs, IntoArguments, PayloadValue,
    Registry, Worker, Workflow,
    activity::Activity,
    client::{Handled, Start},
    worker::WorkerError,
};
use tokio::task::AbortHandle;

use crate::{
    child::{Fake, FakeRun},
    engine::TestEngine,
    faults::{Faults, InjectedFault, Saboteur},
    held::WorkLedger,
    lock::lock,
    mock::Mocks,
    observed::Observed,
    time::Time,
    worker::{Lifeline, Post, TestWorker},
};

/// Initial time of every environment, so that a test does not depend on the date: 2025-01-01, 00:00
/// UTC.
const BEGINNING_SECONDS: i64 = 1_735_689_600;

/// Changes what a worker runs, before it starts.
type Change = Box<dyn Fn(&mut Registry) + Send + Sync>;

/// A whole engine in memory, for one test.
///
/// Time stands still while anything is in progress: a workflow task, an attempt of an activity, a
/// call, or the test itself. While the test waits for a result, such as that of a workflow, and
/// nothing is in progress, time skips to the next due time. So a month of sleep takes milliseconds,
/// and no activity ever exceeds its timeout by accident.
///
/// A test never waits forever: if for some seconds nothing is in progress and nothing is due, or if
/// time has skipped thousands of times with only failures, its calls fail with
/// [`NoAnswer`](abide_sdk::client::ClientError::NoAnswer), which names the open runs and what they
/// wait for.
///
/// Dropping the environment ends everything in it.
pub struct TestEnvironment {
    engine: Arc<TestEngine>,
    time: Arc<Time>,
    held: WorkLedger,
    changes: Mutex<Vec<Change>>,
    pub(crate) mocks: Mocks,
    faults: Faults,
    workers: Mutex<Vec<TestWorker>>,
    mover: AbortHandle,
    codecs: Codecs,
}

impl TestEnvironment {
    /// Creates an environment without workers. Needs a tokio runtime.
    pub async fn new() -> Self {
        let beginning = Timestamp::new(BEGINNING_SECONDS, 0).unwrap_or(Timestamp::EPOCH);
        let clock = Arc::new(ManualClock::new(beginning));
        let engine = Arc::new(TestEngine::start(Arc::clone(&clock)).await);
        let time = Arc::new(Time::new(clock, engine.gauge()));
        let mover = tokio::spawn(Arc::clone(&time).pass()).abort_handle();
        let (held, faults) = (WorkLedger::default(), Faults::default());
        let (changes, workers) = (Mutex::default(), Mutex::default());
        let (codecs, mocks) = (Codecs::new(), Mocks::default());
        Self { engine, time, held, changes, mocks, faults, workers, mover, codecs }
    }

    /// The same environment with codecs for its clients and for workers that are added later.
    #[must_use]
    pub fn with_codecs(mut self, codecs: Codecs) -> Self {
        self.codecs = codecs;
        self
    }

    /// Creates an environment with one worker:
    /// `TestEnvironment::with(|worker| worker.workflow::<Order>().activity(charge)).await?`.
    pub async fn with(set_up: impl FnOnce(Worker) -> Worker) -> Result<Self, WorkerError> {
        let env = Self::new().await;
        env.worker(set_up).await?;
        Ok(env)
    }

    /// Adds a worker: `env.worker(|worker| worker.workflow::<Order>().activity(charge)).await?`.
    /// Returns when it can take work.
    pub async fn worker(
        &self,
        set_up: impl FnOnce(Worker) -> Worker,
    ) -> Result<TestWorker, WorkerError> {
        let lifeline = Lifeline::default();
        let transport = Arc::new(self.observed().with_faults(&self.faults, &lifeline));
        let client = Client::new(Arc::clone(&transport) as _).with_codecs(self.codecs.clone());
        // Naming the build by a hash of the executable takes time and serves no purpose here.
        let worker = set_up(Worker::new(&client).build_id("test"));
        let saboteur = Saboteur {
            faults: self.faults.clone(),
            time: Arc::clone(&self.time),
            held: self.held.clone(),
            lifeline: lifeline.clone(),
        };
        let worker = worker.change_registry(|registry| {
            lock(&self.changes).iter().for_each(|change| change(registry));
            self.mocks.enter(registry);
            saboteur.enter(registry);
        });
        let post = Post::new(worker, transport, Arc::clone(&self.time));
        lifeline.tie(&post);
        post.start().await?;
        let worker = TestWorker(post);
        lock(&self.workers).push(worker.clone());
        Ok(worker)
    }

    /// A client of the engine. While one of its calls waits, time may skip.
    pub fn client(&self) -> Client {
        Client::new(Arc::new(self.observed())).with_codecs(self.codecs.clone())
    }

    /// Starts a workflow under an id that is drawn here; the handle's `id()` returns it.
    pub fn start<W: Workflow + Handled>(
        &self,
        input: impl IntoArguments<W::Arguments>,
    ) -> Start<W> {
        self.client().start_new::<W>(input)
    }

    /// Waits until everything that is in progress has been processed. No time passes.
    pub async fn settle(&self) {
        self.skip(Duration::ZERO).await;
    }

    /// Current time of the engine.
    pub fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// Advances time by this much. What becomes due in between happens in order and at its time;
    /// when this returns, all of it has been processed.
    pub async fn skip(&self, duration: Duration) {
        self.time.skip(duration).await;
    }

    fn observed(&self) -> Observed {
        Observed::new(Arc::clone(&self.engine) as _, &self.time, &self.held)
    }
}

/// Replacements for real code, in all workers that are added afterwards.
impl TestEnvironment {
    /// Replaces the code of an activity.
    pub fn replace_activity<A, M, F, R, E>(&self, activity: A, fake: F)
    where
        A: Activity<M, State: Send + Sync, Input: Send, Output: PayloadValue>,
        F: Fn(ActivityContext, A::Input) -> R + Send + Sync + 'static,
        R: Future<Output = Result<A::Output, E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        let (definition, fake) = (activity.definition(), Arc::new(fake));
        self.change(move |registry| {
            let fake = Arc::clone(&fake);
            registry.replace_activity(definition, move |context, input| fake(context, input));
        });
    }

    /// Makes an activity never return, to test its timeouts. Time passes meanwhile.
    pub fn hang_activity<A, M>(&self, activity: A)
    where
        A: Activity<M, State: Send + Sync, Input: Send, Output: PayloadValue + Send>,
    {
        let held = self.held.clone();
        self.replace_activity(activity, move |context, _| {
            held.release(context.info());
            std::future::pending::<Result<A::Output, ActivityError>>()
        });
    }

    /// Replaces a child's code by a function: `env.replace_child::<Parcel>(|item|
    /// Ok(format!("{item} was sent")))`. An `Err` fails the child. The child is still a real run,
    /// and its parent uses the real engine. For workers with workflows.
    pub fn replace_child<C: Workflow>(
        &self,
        fake: impl Fn(C::Input) -> Result<C::Output, BoxError> + Send + Sync + 'static,
    ) {
        self.fake::<C>(Some(Arc::new(fake)));
    }

    /// Makes a child never end by itself, to test timeouts, and what a parent does to it. It still
    /// obeys a cancel request.
    pub fn hang_child<C: Workflow>(&self) {
        self.fake::<C>(None);
    }

    fn fake<C: Workflow>(&self, fake: Fake<C>) {
        self.change(move |registry| {
            // A worker with activities only must not start taking workflow tasks.
            if registry.workflow_types().next().is_some() {
                let fake = fake.clone();
                registry
                    .replace_workflow::<C>(move |_, _| Box::new(FakeRun::<C>::new(fake.clone())));
            }
        });
    }

    pub(crate) fn change(&self, change: impl Fn(&mut Registry) + Send + Sync + 'static) {
        lock(&self.changes).push(Box::new(change));
    }
}

/// Faults. They apply to all workers, including existing ones.
impl TestEnvironment {
    /// Fails the attempt with this number, from 1, of each such activity. Its code does not run.
    pub fn fail_attempt<A: Activity<M>, M>(
        &self,
        activity: A,
        attempt: u32,
        message: impl Into<String>,
    ) {
        self.plan(activity, attempt, InjectedFault::Fail(message.into()));
    }

    /// Delays the code of the attempt with this number, of each such activity. Timeouts may pass
    /// meanwhile.
    pub fn delay_attempt<A: Activity<M>, M>(&self, activity: A, attempt: u32, delay: Duration) {
        self.plan(activity, attempt, InjectedFault::Delay(delay));
    }

    /// Loses the worker once, after the code of the attempt with this number has run and before the
    /// engine learns of it: is the activity idempotent? The worker restarts with an empty cache.
    pub fn lose_attempt<A: Activity<M>, M>(&self, activity: A, attempt: u32) {
        self.plan(activity, attempt, InjectedFault::Lose);
    }

    /// Loses the worker that is about to complete a workflow task, the one with this number, from 1
    /// and counted from now. Its code has run, but the engine does not learn of it. The worker
    /// restarts with an empty cache.
    pub fn lose_task(&self, number: u32) {
        self.faults.lose_task(number);
    }

    /// Kills engine and workers, as a power failure would, and restarts them with what was stored.
    /// Workers that were killed restart too. Calls that wait meanwhile may fail.
    pub async fn crash(&self) -> Result<(), WorkerError> {
        let workers = lock(&self.workers).clone();
        for worker in &workers {
            worker.kill().await;
        }
        self.engine.crash().await;
        self.time.watch(self.engine.gauge());
        for worker in &workers {
            worker.restart().await?;
        }
        Ok(())
    }

    fn plan<A: Activity<M>, M>(&self, activity: A, attempt: u32, fault: InjectedFault) {
        self.faults.plan(activity.definition().name(), attempt, fault);
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
