//! Answers that are lost and streams that end: what was asked for happens once.

use std::{
    collections::BTreeSet,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use abide::{
    Client, ClientError, Context, Worker, WorkerError,
    future::BoxFuture,
    transport::{Answer, Given, Session, SessionSender, Transport},
};
use abide_core::{
    call::{
        Call, CallError, CallReply, Dispatch, HistoryPage, HistoryRequest, QueueKey, RunTarget,
        WorkKind, Worker as Named,
    },
    ids::ShardId,
    list::{RunFilter, RunRow, WaitFilter, WaitRow},
    run::{Description, Refusal},
};
use abide_embedded::Embedded;
use abide_sdk::{activities, workflow};
use tokio::{sync::Notify, time::timeout};

use crate::world::{Gate, Running};

/// Carries out every call and loses the first answer to it; ends the stream of workers on demand.
struct Unsteady {
    inner: Arc<dyn Transport>,
    asked: Mutex<BTreeSet<String>>,
    lost: AtomicU32,
    cut: Arc<Notify>,
    streams: AtomicU32,
    connected: Notify,
    /// Streams end as soon as they are there.
    barren: bool,
}

impl Unsteady {
    fn new(engine: &Embedded) -> Arc<Self> {
        Arc::new(Self::over(engine))
    }

    fn over(engine: &Embedded) -> Self {
        Self {
            inner: Arc::clone(engine.client().transport()),
            asked: Mutex::default(),
            lost: AtomicU32::new(0),
            cut: Arc::default(),
            streams: AtomicU32::new(0),
            connected: Notify::new(),
            barren: false,
        }
    }

    fn client(self: &Arc<Self>) -> Client {
        Client::new(Arc::clone(self) as Arc<dyn Transport>)
    }
}

impl Transport for Unsteady {
    fn call(&self, call: Call) -> Answer<'_, CallReply> {
        let first = self.asked.lock().unwrap().insert(format!("{call:?}"));
        Box::pin(async move {
            let result = self.inner.call(call).await;
            if first {
                self.lost.fetch_add(1, Ordering::SeqCst);
                return Err(CallError::Unavailable("the answer was lost".into()));
            }
            result
        })
    }

    fn describe(&self, target: RunTarget) -> Answer<'_, Description> {
        self.inner.describe(target)
    }

    fn history(&self, request: HistoryRequest) -> Answer<'_, HistoryPage> {
        self.inner.history(request)
    }

    fn runs(&self, filter: RunFilter, limit: usize) -> Answer<'_, Vec<RunRow>> {
        self.inner.runs(filter, limit)
    }

    fn count_runs(&self, filter: RunFilter) -> Answer<'_, u64> {
        self.inner.count_runs(filter)
    }

    fn waits(&self, filter: WaitFilter, limit: usize) -> Answer<'_, Vec<(ShardId, WaitRow)>> {
        self.inner.waits(filter, limit)
    }

    fn connect(
        &self,
        worker: Named,
        takes: Vec<(QueueKey, usize)>,
    ) -> Answer<'_, Box<dyn Session>> {
        Box::pin(async move {
            self.streams.fetch_add(1, Ordering::SeqCst);
            self.connected.notify_one();
            let inner = self.inner.connect(worker, takes).await?;
            let stream = Stream { inner, cut: Arc::clone(&self.cut), barren: self.barren };
            Ok(Box::new(stream) as Box<dyn Session>)
        })
    }
}

struct Stream {
    inner: Box<dyn Session>,
    cut: Arc<Notify>,
    barren: bool,
}

impl Session for Stream {
    fn sender(&self) -> Arc<dyn SessionSender> {
        self.inner.sender()
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Given>> {
        Box::pin(async move {
            if self.barren {
                return None;
            }
            tokio::select! {
                () = self.cut.notified() => None,
                given = self.inner.next() => given,
            }
        })
    }
}

struct Gated(Gate);

#[activities]
impl Gated {
    #[activity]
    async fn pass(&self) {
        self.0.pass().await;
    }
}

#[derive(Default)]
struct Tally {
    sum: u32,
}

#[workflow]
impl Tally {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        ctx.activity(Gated::pass, ()).await?;
        ctx.receive(Self::close).await?;
        Ok(ctx.read(|tally| tally.sum))
    }

    #[signal]
    fn add(&mut self, number: u32) {
        self.sum += number;
    }

    #[update]
    fn double(&mut self) -> u32 {
        self.sum *= 2;
        self.sum
    }

    #[signal]
    fn close();
}

fn worker(client: &Client, gate: &Gate) -> Worker {
    Worker::new(client).workflow::<Tally>().activities(Gated(gate.clone()))
}

#[tokio::test]
async fn an_unanswered_call_is_repeated_and_takes_effect_once() {
    let engine = Embedded::in_memory().await;
    let gate = Gate::new();
    gate.open();
    let running = Running::start(worker(&engine.client(), &gate));
    let unsteady = Unsteady::new(&engine);
    let client = unsteady.client();
    let handle = client.start::<Tally>("tally", ()).await.unwrap();
    handle.signal(Tally::add, 10).await.unwrap();
    handle.signal(Tally::add, 11).await.unwrap();
    assert_eq!(handle.update(Tally::double, ()).await.unwrap(), 42);
    handle.signal(Tally::close, ()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 42);
    assert_eq!(unsteady.lost.load(Ordering::SeqCst), 6, "every first answer was lost");

    gate.open();
    let handle = client.start::<Tally>("another", ()).await.unwrap();
    handle.terminate("enough").await.unwrap();
    let other = handle.terminate("of something else").await.unwrap_err();
    assert_eq!(other, ClientError::Refused(Refusal::RunClosed));
    running.stop().await;
}

#[tokio::test]
async fn an_attempt_outlives_the_stream_that_brought_it() {
    let engine = Embedded::in_memory().await;
    let unsteady = Unsteady::new(&engine);
    let gate = Gate::new();
    let running = Running::start(worker(&unsteady.client(), &gate));
    let handle = engine.client().start::<Tally>("tally", ()).await.unwrap();
    gate.visitor().await;
    unsteady.cut.notify_one();
    gate.open();
    handle.signal(Tally::close, ()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 0);
    assert_eq!(gate.visits(), 1, "the attempt was kept");
    assert_eq!(unsteady.streams.load(Ordering::SeqCst), 2);
    running.stop().await;
}

#[tokio::test]
async fn streams_that_bring_nothing_are_not_opened_in_a_hurry() {
    let engine = Embedded::in_memory().await;
    let unsteady = Arc::new(Unsteady { barren: true, ..Unsteady::over(&engine) });
    let sixth = async {
        while unsteady.streams.load(Ordering::SeqCst) < 6 {
            unsteady.connected.notified().await;
        }
    };
    let began = Instant::now();
    let worker = worker(&unsteady.client(), &Gate::new()).build_id("test");
    worker.run_until(sixth).await.unwrap();
    // Five waits, of which each is about twice as long as the one before.
    assert!(began.elapsed() > Duration::from_millis(100), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_worker_of_an_unknown_namespace_is_refused() {
    let engine = Embedded::in_memory().await;
    let client = engine.client().with_namespace("elsewhere");
    let life = worker(&client, &Gate::new()).build_id("test").run_until(pending::<()>());
    let refused = timeout(Duration::from_secs(10), life).await.unwrap().unwrap_err();
    let WorkerError::Refused(CallError::Invalid(invalid)) = refused else {
        panic!("not refused: {refused}");
    };
    assert!(invalid.problem.contains("there is: default"), "{invalid}");
}

async fn connect(engine: &Embedded, name: &str) -> Box<dyn Session> {
    let named = Named { session: name.into(), identity: name.into(), build: Some("test".into()) };
    let session = engine.client().transport().connect(named, Vec::new()).await.unwrap();
    let queue =
        QueueKey { namespace: "default".into(), queue: "default".into(), kind: WorkKind::Workflow };
    session.sender().credit(queue, 10);
    session
}

async fn next_work(session: &mut Box<dyn Session>) -> Dispatch {
    loop {
        match session.next().await.unwrap() {
            Given::Work(dispatch) => return dispatch,
            Given::PresentAttempts(_) => {}
        }
    }
}

#[tokio::test]
async fn a_worker_that_withdraws_is_given_nothing_more() {
    let engine = Embedded::in_memory().await;
    let mut leaving = connect(&engine, "leaving").await;
    leaving.sender().withdraw();
    let mut staying = connect(&engine, "staying").await;
    engine.client().start::<Tally>("tally", ()).await.unwrap();
    tokio::select! {
        work = next_work(&mut leaving) => panic!("it withdrew, and is given {work:?}"),
        work = next_work(&mut staying) => assert!(matches!(work, Dispatch::Workflow { .. })),
    }
}
