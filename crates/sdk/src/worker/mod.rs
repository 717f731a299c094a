//! A worker: takes workflow tasks, queries and activities of one queue and runs them.
//!
//! Workflow code runs on dedicated threads (`thread`), because a run's machine never leaves its
//! thread; a run belongs to one thread and stays in its memory (`cache`) while there is room.
//! Activities are tasks of the tokio runtime (`activity`, `attempts`, `heartbeat`), and so are
//! local activities (`local`): a workflow task that started some waits beside its thread (`pause`)
//! until they have ended. `session` connects and shuts down, `slots` and `eager` bound how much
//! work is in flight, `watchdog` detects code that blocks its thread.

mod ack;
mod activity;
mod attempts;
mod build;
mod cache;
mod cached_run;
mod eager;
mod encoded;
mod failed_attempt;
mod heartbeat;
mod history;
mod local;
pub mod metrics;
pub(crate) mod notice;
mod overdue;
mod oversized;
mod pause;
mod query;
mod replay;
mod running;
mod session;
mod shared;
mod shutdown;
mod slots;
mod span;
mod task;
mod thread;
mod thread_message;
mod threads;
mod unserved;
mod watchdog;

use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use abide_core::{
    dispatch::{self, QueueKey, WorkKind},
    event::Event,
    ids::BuildId,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, Semaphore, watch},
    task::JoinError,
};
use uuid::Uuid;

use self::{
    attempts::Attempts,
    eager::EagerSlots,
    replay::REPLAYS_ONLY,
    session::{Life, SessionEnd},
    shared::WorkerCore,
    slots::Slots,
    threads::Threads,
};
use crate::{
    activity::{Activities, Activity, ActivityContext},
    client::{Client, ClientError, Serving},
    definition::Workflow,
    interceptor::{Interceptor, Interceptors},
    payload::PayloadValue,
    registry::{Registry, RegistryError},
    returned::BoxError,
};

pub use self::{
    metrics::WorkerMetrics,
    replay::{REPLAY_VARIABLE, ReplayFolder, ReplayOutcome, ReplayReport},
    running::RunningWorker,
    shutdown::ShutdownOutput,
};

/// The queue that workers and workflows use if they do not choose one.
pub const DEFAULT_QUEUE: &str = "default";

/// Returns a unique queue name that no other worker uses: `name` plus a random id. An activity
/// returns it to the workflow, which then sends activities there that must run on the same worker:
/// `ctx.activity(resize, file).queue(queue)`.
pub fn own_queue(name: &str) -> String {
    format!("{name}@{}", Uuid::new_v4())
}

/// A worker that is not running yet. Register its workflows and activities, then call
/// [`Worker::spawn`] to run it in the background, or [`Worker::run`] or [`Worker::run_until`].
#[derive(Clone)]
#[must_use = "a worker does nothing until it is run"]
pub struct Worker {
    client: Client,
    registry: Registry,
    interceptors: Interceptors,
    registered: Result<(), RegistryError>,
    queue: String,
    identity: Option<String>,
    build: Option<BuildId>,
    threads: usize,
    concurrent_tasks: usize,
    concurrent_activities: usize,
    concurrent_locals: usize,
    cached_runs: usize,
    grace: Duration,
    task_deadline: Duration,
    metrics: WorkerMetrics,
}

/// Why a worker could not start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// Two workflows or two activities are registered under the same name.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Neither a workflow nor an activity is registered.
    #[error("the worker of queue {0} has neither workflows nor activities: register some")]
    NothingToRun(String),
    /// The engine refuses the worker as invalid; connecting again would not help.
    #[error("the engine refused the worker: {0}")]
    Refused(#[source] ClientError),
    /// The engine in this process was shut down.
    #[error("the worker cannot continue: {0}")]
    EngineGone(#[source] ClientError),
    /// The program was started by `abide replay`, and the histories to replay cannot be read.
    #[error("the histories that {REPLAY_VARIABLE} names cannot be replayed: {0}")]
    NotReplayed(#[source] io::Error),
    /// The operating system could not start a workflow thread.
    #[error("a workflow thread could not be started: {0}")]
    Thread(#[from] io::Error),
    /// The future that should stop the worker failed. The worker has stopped.
    #[error("the worker was stopped by an error: {0}")]
    Shutdown(#[source] BoxError),
    /// The task of a worker in the background panicked, or its runtime was shut down.
    #[error("the worker's task ended early: {0}")]
    Aborted(#[source] JoinError),
}

impl Worker {
    /// A worker for the client's engine and namespace, on the queue [`DEFAULT_QUEUE`].
    pub fn new(client: &Client) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            client: client.clone(),
            registry: Registry::new(),
            interceptors: Interceptors::NONE,
            registered: Ok(()),
            queue: DEFAULT_QUEUE.into(),
            identity: None,
            build: None,
            threads: cores.min(2),
            concurrent_tasks: 1_000,
            concurrent_activities: 1_000,
            concurrent_locals: 1_000,
            cached_runs: 1_000,
            grace: Duration::from_secs(10),
            task_deadline: Duration::from_secs(2),
            metrics: WorkerMetrics::default(),
        }
    }

    /// Takes work from this queue instead of [`DEFAULT_QUEUE`].
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = queue.into();
        self
    }

    /// Registers this workflow. Two workflows of one name make [`Worker::run`] fail.
    pub fn workflow<W: Workflow>(mut self) -> Self {
        let registered = self.registry.workflow::<W>();
        self.registered = self.registered.and(registered);
        self
    }

    /// Registers this activity. Two activities of one name make [`Worker::run`] fail.
    pub fn activity<A, M>(mut self, activity: A) -> Self
    where
        A: Activity<M, State = (), Input: Send, Output: PayloadValue>,
    {
        let registered = self.registry.activity(activity);
        self.registered = self.registered.and(registered);
        self
    }

    /// Registers these activities, which share state.
    pub fn activities<A: Activities>(mut self, shared: A) -> Self {
        let registered = self.registry.activities(shared);
        self.registered = self.registered.and(registered);
        self
    }

    /// Replaces the code of an activity, registered or not: for the test environment, whose `mock` and
    /// `replace_activity` are for users.
    #[doc(hidden)]
    pub fn replace_activity<A, M, F, R, E>(mut self, activity: A, code: F) -> Self
    where
        A: Activity<M, State: Send + Sync, Input: Send, Output: PayloadValue>,
        F: Fn(ActivityContext, A::Input) -> R + Send + Sync + 'static,
        R: Future<Output = Result<A::Output, E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        self.registry.replace_activity(activity, code);
        self
    }

    /// Replaces everything registered so far by this registry.
    #[doc(hidden)]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self.registered = Ok(());
        self
    }

    /// Changes the registry in place: for tests that replace some of the code.
    #[doc(hidden)]
    pub fn change_registry(mut self, change: impl FnOnce(&mut Registry)) -> Self {
        change(&mut self.registry);
        self
    }

    /// Adds an interceptor inside those of the client and those that were added before.
    pub fn interceptor(mut self, interceptor: impl Interceptor) -> Self {
        self.interceptors = self.interceptors.with(Arc::new(interceptor));
        self
    }

    /// The worker's identity, as histories show it; by default the client's identity.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// The id of this build of the code; by default a hash of the executable. A run that does not
    /// match the code of one build is retried by another build.
    pub fn build_id(mut self, build: impl Into<BuildId>) -> Self {
        self.build = Some(build.into());
        self
    }

    /// How many threads run workflow code; by default 2, or 1 on a single core.
    pub fn workflow_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// The largest number of workflow tasks and queries in flight; by default 1,000.
    pub fn max_concurrent_tasks(mut self, tasks: usize) -> Self {
        self.concurrent_tasks = tasks;
        self
    }

    /// The largest number of activities in flight; by default 1,000. If the worker has workflows
    /// too, half of them are reserved for activities that its own workflows schedule.
    pub fn max_concurrent_activities(mut self, activities: usize) -> Self {
        self.concurrent_activities = activities;
        self
    }

    /// The largest number of local activities that run at once; by default 1,000. Others wait for a
    /// free place.
    pub fn max_concurrent_local_activities(mut self, activities: usize) -> Self {
        self.concurrent_locals = activities;
        self
    }

    /// How many runs are kept in memory between their tasks; by default 1,000. An evicted run is
    /// replayed at its next task.
    pub fn max_cached_runs(mut self, runs: usize) -> Self {
        self.cached_runs = runs;
        self
    }

    /// How long work in flight may take to finish after shutdown begins; by default 10 seconds.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long a workflow task may block its thread before a warning names it; by default 2
    /// seconds.
    pub fn task_deadline(mut self, deadline: Duration) -> Self {
        self.task_deadline = deadline;
        self
    }

    /// What the worker counts. Take it before the worker runs, and keep it beside your other metrics.
    pub fn metrics(&self) -> WorkerMetrics {
        self.metrics.clone()
    }

    /// Runs the worker forever. If it fails, this returns why, and calls that wait for runs of its
    /// queue fail too, as [`Worker::spawn`] says. Under `abide replay` it replays histories instead, and
    /// returns.
    pub async fn run(self) -> Result<(), WorkerError> {
        self.run_until(std::future::pending::<()>()).await
    }

    /// Runs the worker until `shutdown` resolves, then finishes the work in flight, disconnects,
    /// and returns the output of `shutdown`; if that is an error, as [`WorkerError::Shutdown`].
    /// Dropping the future stops the worker at once.
    pub async fn run_until<T: ShutdownOutput>(
        self,
        shutdown: impl Future<Output = T>,
    ) -> Result<T::Value, WorkerError> {
        let serving = self.serve();
        let ended = async {
            match self.begin().await? {
                Some(life) => life.run(pin!(shutdown)).await.map(Some),
                None => Ok(None),
            }
        };
        match ended.await {
            Ok(Some(output)) => output.into_value(),
            Ok(None) => {
                serving.fail(REPLAYS_ONLY);
                Ok(T::Value::default())
            }
            Err(error) => {
                if !matches!(error, WorkerError::EngineGone(_)) {
                    serving.fail(&error.to_string());
                }
                Err(error)
            }
        }
    }

    /// Counts the worker among those of its client.
    fn serve(&self) -> Serving {
        self.client.workers().serve(self.client.namespace().clone(), self.queue.clone())
    }

    /// Begins the worker's life; none if it only replays histories.
    async fn begin(mut self) -> Result<Option<Life>, WorkerError> {
        self.registered.clone()?;
        self.registry.intercept(&self.client.interceptors().around(&self.interceptors));
        if let Some(folder) = ReplayFolder::of_program() {
            self.replay(folder).await.map_err(WorkerError::NotReplayed)?;
            return Ok(None);
        }
        let workflows = self.registry.workflow_types().next().is_some();
        let activities = self.registry.activity_types().next().is_some();
        if !workflows && !activities {
            return Err(WorkerError::NothingToRun(self.queue));
        }
        let eager = if workflows && activities { self.concurrent_activities / 2 } else { 0 };
        let tasks = if workflows { self.concurrent_tasks.max(1) } else { 0 };
        let others = if activities { (self.concurrent_activities - eager).max(1) } else { 0 };
        self.metrics.begin(&self.queue, &self.registry);
        let shared = Arc::new(WorkerCore {
            transport: Arc::clone(self.client.transport()),
            codecs: self.client.codecs().strict(),
            runtime: Handle::current(),
            worker: self.registration().await,
            tasks: Slots::new(self.queue_of(WorkKind::Workflow), tasks),
            activities: Slots::new(self.queue_of(WorkKind::Activity), others),
            eager: EagerSlots::new(eager),
            local_activities: Arc::new(Semaphore::new(
                self.concurrent_locals.clamp(1, Semaphore::MAX_PERMITS),
            )),
            attempts: Attempts::default(),
            stream: watch::Sender::new(None),
            ended: Notify::new(),
            registry: self.registry,
            queue: self.queue,
            metrics: self.metrics,
            locals_count: self.concurrent_locals,
            unserved: Default::default(),
        });
        shared.metrics.runs(&shared);
        Ok(Some(Life {
            threads: Threads::start(&shared, self.threads, self.cached_runs)?,
            grace: self.grace,
            task_deadline: self.task_deadline,
            _end: SessionEnd(Arc::clone(&shared)),
            shared,
        }))
    }

    /// Replays the histories that `abide replay` requests.
    async fn replay(self, folder: ReplayFolder) -> io::Result<()> {
        let Self { queue, registry, client, .. } = self;
        let codecs = client.codecs().strict();
        let runtime = Handle::current();
        // Workflow code may block its thread, so it does not run on the runtime's threads.
        let replaying = tokio::task::spawn_blocking(move || {
            let decode = |events: &mut Vec<Event>| runtime.block_on(codecs.decode_events(events));
            let histories = folder.replay(&queue, &registry, &decode)?;
            tracing::info!(%queue, histories, "replayed for `abide replay`");
            Ok(())
        });
        replaying.await?
    }

    fn queue_of(&self, kind: WorkKind) -> QueueKey {
        let namespace = self.client.namespace().clone();
        QueueKey { namespace, queue: self.queue.clone(), kind }
    }

    async fn registration(&self) -> dispatch::Worker {
        let build = match self.build.clone() {
            Some(build) => Some(build),
            None => tokio::task::spawn_blocking(build::of_executable).await.ok().flatten(),
        };
        let identity = self.identity.as_deref().unwrap_or_else(|| self.client.identity());
        let session = Uuid::new_v4().to_string().into();
        dispatch::Worker { session, identity: identity.into(), build }
    }
}
