//! Lost replies and interrupted streams: every request takes effect once.

use std::{
    future::pending,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use abide::{
    Client, ClientError, Context, Worker, WorkerError,
    list::RunStatus,
    transport::{Given, Session},
};
use abide_core::{
    dispatch::{Dispatch, QueueKey, WorkKind, Worker as Named},
    run::Refusal,
};
use abide_embedded::Embedded;
use abide_sdk::{activities, workflow};
use tokio::time::timeout;

use crate::{
    unsteady::Unsteady,
    world::{Gate, Running},
};

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
        ctx.receive(Self::CLOSE).await?;
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
    handle.signal(Tally::ADD, 10).await.unwrap();
    handle.signal(Tally::ADD, 11).await.unwrap();
    assert_eq!(handle.update(Tally::DOUBLE, ()).await.unwrap(), 42);
    handle.signal(Tally::CLOSE, ()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 42);
    assert_eq!(unsteady.lost.load(Ordering::SeqCst), 6, "every first reply was lost");

    gate.open();
    let handle = client.start::<Tally>("another", ()).await.unwrap();
    handle.terminate("enough").await.unwrap();
    let other = handle.terminate("of something else").await.unwrap_err();
    assert_eq!(other, ClientError::Refused(Refusal::RunClosed.into()));
    running.stop().await;
}

/// The workflow is started again before the caller retries.
#[tokio::test]
async fn a_repeated_end_does_not_hit_the_run_that_followed() {
    let engine = Embedded::in_memory().await;
    let direct = engine.client();
    let unsteady = Unsteady::new(&engine);
    let first = direct.start::<Tally>("tally", ()).await.unwrap();
    let starter = direct.clone();
    *unsteady.meanwhile.lock().unwrap() = Some(Box::pin(async move {
        starter.start::<Tally>("tally", ()).await.unwrap();
    }));
    unsteady.client().handle::<Tally>("tally").terminate("enough").await.unwrap();
    let shown = direct.handle::<Tally>("tally").describe().await.unwrap();
    assert_ne!(Some(shown.run), first.run_id());
    assert_eq!(shown.status, RunStatus::Running);
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
    handle.signal(Tally::CLOSE, ()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 0);
    assert_eq!(gate.visits(), 1, "the attempt was kept");
    assert_eq!(unsteady.streams.load(Ordering::SeqCst), 2);
    running.stop().await;
}

#[tokio::test]
async fn streams_that_bring_nothing_are_not_opened_in_a_hurry() {
    let engine = Embedded::in_memory().await;
    let unsteady = Unsteady::barren(&engine);
    let sixth = async {
        while unsteady.streams.load(Ordering::SeqCst) < 6 {
            unsteady.connected.notified().await;
        }
    };
    let began = Instant::now();
    let worker = worker(&unsteady.client(), &Gate::new()).build_id("test");
    worker.run_until(sixth).await.unwrap();
    // Five pauses, each about twice as long as the one before.
    assert!(began.elapsed() > Duration::from_millis(100), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_worker_of_an_unknown_namespace_is_refused() {
    let engine = Embedded::in_memory().await;
    let client = engine.client().with_namespace("elsewhere");
    let life = worker(&client, &Gate::new()).build_id("test").run_until(pending::<()>());
    let refused = timeout(Duration::from_secs(10), life).await.unwrap().unwrap_err();
    let WorkerError::Refused(ClientError::Invalid { problem, .. }) = refused else {
        panic!("not refused: {refused}");
    };
    assert!(problem.contains("known namespaces: default"), "{problem}");
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
        work = next_work(&mut leaving) => panic!("it withdrew, but gets {work:?}"),
        work = next_work(&mut staying) => assert!(matches!(work, Dispatch::Workflow { .. })),
    }
}
