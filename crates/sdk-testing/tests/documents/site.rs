//! An engine on a file that can crash and come back, with a clock that the test moves; workers that can
//! be killed; and ways to look at histories and rows. Nothing here sleeps.

use std::{
    path::PathBuf,
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use abide::client::HistoryEvent;
use abide::{Client, Timestamp, Worker, WorkerError, WorkflowHandle, transport::ask};
use abide_core::{
    event::{Fact, TimerSpec},
    ids::{ShardId, WorkflowKey},
    list::{WaitFilter, WaitRow},
    operation::{AwaitWaits, Describe, RunTarget},
    run::Description,
};
use abide_embedded::{
    Embedded, Limits, OpenError,
    clock::{Clock, ManualClock},
};
use abide_store::{
    Batch, Store, Write,
    rows::{DueRow, TaskRow},
};
use abide_store_sqlite::SqliteStore;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// An engine on an SQLite file. Its clock stands still until the test moves it, also while the engine
/// is down.
pub(crate) struct Site {
    folder: TempDir,
    clock: Arc<ManualClock>,
    engine: Option<Embedded>,
}

impl Site {
    pub(crate) async fn open() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let now = Timestamp::from_unix_millis(1_800_000_000_000);
        let clock = Arc::new(ManualClock::new(now));
        let mut site = Self { folder, clock, engine: None };
        site.reopen().await;
        site
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("abide.db")
    }

    /// Ends the engine where it stands; the file stays.
    pub(crate) fn crash(&mut self) {
        self.engine = None;
    }

    /// Opens the engine again, as soon as the one before has let go of the file.
    pub(crate) async fn reopen(&mut self) {
        self.crash();
        // A worker that is gone has no time to come back, because time stands still.
        let limits = Limits { session_grace: Duration::ZERO, ..Limits::default() };
        let engine = loop {
            let builder = Embedded::builder().limits(limits.clone()).clock(self.clock.clone());
            match builder.open(self.path()).await {
                Ok(engine) => break engine,
                Err(OpenError::File(abide_store_sqlite::OpenError::InUse { .. })) => {
                    tokio::task::yield_now().await
                }
                Err(error) => panic!("{error}"),
            }
        };
        self.engine = Some(engine);
    }

    pub(crate) fn engine(&self) -> &Embedded {
        self.engine.as_ref().expect("the engine is open")
    }

    pub(crate) fn client(&self) -> Client {
        self.engine().client()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Lets time pass, whether the engine is there or not.
    pub(crate) fn pass(&self, time: Duration) {
        self.clock.move_to(self.now().saturating_add(time));
    }

    /// A worker beside the test.
    pub(crate) fn work(&self, set_up: impl FnOnce(Worker) -> Worker) -> Working {
        self.work_as("test", set_up)
    }

    /// A worker with code of this build.
    pub(crate) fn work_as(&self, build: &str, set_up: impl FnOnce(Worker) -> Worker) -> Working {
        Working::start(set_up(self.engine().worker().build_id(build)))
    }

    /// The current run of a workflow as it is shown.
    pub(crate) async fn shown(&self, workflow: &str) -> Description {
        let target = RunTarget { workflow: key(workflow), run: None };
        *self.client().ask(Describe { target }).await.expect("it is there")
    }

    /// How many rows the log of the run has: one more for each thing that was taken.
    pub(crate) async fn log_rows(&self, workflow: &str) -> u64 {
        let target = RunTarget { workflow: key(workflow), run: None };
        let asked = AwaitWaits { target, after: 0 };
        let shown = ask(&**self.client().transport(), asked).await;
        shown.expect("it is there").log_row
    }

    /// The rows of a workflow's shard, while the engine is down.
    pub(crate) async fn rows(&self, workflow: &str) -> Rows {
        let store = self.store().await;
        let rows = Rows::of(&store, workflow).await;
        drop(store);
        rows
    }

    /// Writes to the store behind the engine's back, while the engine is down.
    pub(crate) async fn write(&self, workflow: &str, writes: Vec<Write>) {
        let store = self.store().await;
        let shard = key(workflow).slot().shard();
        let epoch = store.shard(shard).await.expect("the shard's row").epoch;
        store.commit(Batch { shard, epoch, writes }).await.expect("it is written");
    }

    async fn store(&self) -> SqliteStore {
        assert!(self.engine.is_none(), "the engine has the file");
        loop {
            match SqliteStore::open(&abide_store_sqlite::Options::new(self.path())) {
                Ok(store) => return store,
                Err(abide_store_sqlite::OpenError::InUse { .. }) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// What a store has of the runs of one workflow's shard, beside their logs.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) tasks: Vec<TaskRow>,
    pub(crate) due: Vec<DueRow>,
    pub(crate) waits: Vec<WaitRow>,
}

impl Rows {
    pub(crate) async fn of(store: &dyn Store, workflow: &str) -> Self {
        let shard = key(workflow).slot().shard();
        let waits = store.waits(WaitFilter::default(), 100).await.expect("waits");
        let here = |(of, row): (ShardId, WaitRow)| (of == shard).then_some(row);
        Self {
            tasks: store.tasks(shard, None, 100).await.expect("tasks"),
            due: store.due(shard, None, Timestamp::NEVER, 100).await.expect("due times"),
            waits: waits.into_iter().filter_map(here).collect(),
        }
    }
}

pub(crate) fn key(workflow: &str) -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: workflow.into() }
}

/// A worker beside the test.
pub(crate) struct Working(JoinHandle<Result<(), WorkerError>>);

impl Working {
    pub(crate) fn start(worker: Worker) -> Self {
        Self(tokio::spawn(worker.run()))
    }

    /// Ends it where it stands.
    pub(crate) async fn kill(self) {
        self.0.abort();
        drop(self.0.await);
    }
}

/// Follows the history until it has such an event.
pub(crate) async fn until<W>(
    handle: &WorkflowHandle<W>,
    what: impl Fn(&Fact) -> bool,
) -> Vec<HistoryEvent> {
    until_count(handle, 1, what).await
}

/// Follows the history until it has so many such events.
pub(crate) async fn until_count<W>(
    handle: &WorkflowHandle<W>,
    count: usize,
    what: impl Fn(&Fact) -> bool,
) -> Vec<HistoryEvent> {
    let mut follower = handle.follow_history();
    let mut history: Vec<HistoryEvent> = Vec::new();
    while history.iter().filter(|event| what(event.fact())).count() < count {
        history.extend(follower.next().await.unwrap().expect("the run closed before"));
    }
    history
}

/// The names of a history's events, without those of workflow tasks.
pub(crate) fn names(history: &[HistoryEvent]) -> Vec<&'static str> {
    let names = history.iter().map(|event| event.name());
    names.filter(|name| !name.starts_with("Task")).collect()
}

/// How many events of this name a history has.
pub(crate) fn count(history: &[HistoryEvent], name: &str) -> usize {
    history.iter().filter(|event| event.name() == name).count()
}

/// The timers that a history has started, in order.
pub(crate) fn timers(history: &[HistoryEvent]) -> Vec<TimerSpec> {
    let timer = |event: &HistoryEvent| match event.fact() {
        Fact::TimerStarted(started) => Some(started.spec.clone()),
        _ => None,
    };
    history.iter().filter_map(timer).collect()
}

/// Holds workflow code in the middle of a task until the test lets it go on.
#[derive(Default)]
pub(crate) struct Hold {
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Hold {
    pub(crate) const fn new() -> Self {
        Self { state: Mutex::new((false, false)), changed: Condvar::new() }
    }

    /// For workflow code: waits, blocking its thread, until the test has called [`Hold::open`].
    pub(crate) fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 = true;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |(_, open)| !*open).unwrap());
    }

    /// For the test: waits until workflow code stands here.
    pub(crate) async fn entered(&'static self) {
        let wait = || drop(self.changed.wait_while(self.state.lock().unwrap(), |(here, _)| !*here));
        tokio::task::spawn_blocking(wait).await.unwrap();
    }

    /// For the test: lets workflow code go on, now and every later time.
    pub(crate) fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}
