//! What workflow code must not do, and what is the same on every replay.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Poll, Waker},
};

use abide::{Context, Timestamp, select, time::Now as _};
use abide_core::event::TaskFailureCause;
use abide_sdk_macros::workflow;
use uuid::Uuid;

use crate::world::{World, seconds};

/// Never ready; whoever polls it leaves a waker where another thread finds it.
#[derive(Default)]
struct Foreign;

static WAKERS: Mutex<Vec<Waker>> = Mutex::new(Vec::new());

impl Future for Foreign {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        WAKERS.lock().unwrap_or_else(PoisonError::into_inner).push(cx.waker().clone());
        Poll::Pending
    }
}

/// Reads the clock of the machine.
#[derive(Default)]
struct Clock;

#[workflow]
impl Clock {
    #[run]
    async fn run(ctx: &Context<Self>, recorded: bool) -> abide::Result<bool> {
        // The world takes each turn twice and compares them, so the result is not the time itself.
        let read = || Timestamp::now() > Timestamp::EPOCH;
        if recorded { ctx.side_effect(read) } else { Ok(read()) }
    }
}

#[test]
fn the_clock_of_the_machine_is_read_as_a_side_effect_or_not_at_all() {
    assert_eq!(World::<Clock>::start(true).result(), Some(true));
    let world = World::<Clock>::start(false);
    let message = &world.faults[0].failure.message;
    assert!(message.contains("workflow code must use `ctx.now()`"), "{message}");
}

#[derive(Default)]
struct Careless;

#[workflow]
impl Careless {
    #[run]
    async fn run(ctx: &Context<Self>, sleeps_too: bool) -> abide::Result<()> {
        if sleeps_too {
            select! {
                () = Foreign => {}
                slept = ctx.sleep(seconds(60)) => slept?,
            }
        } else {
            Foreign.await;
        }
        Ok(())
    }
}

#[test]
fn a_wake_from_outside_is_caught_and_named() {
    let mut world = World::<Careless>::start(true);
    let outside = std::thread::Builder::new().name("outsider".into());
    let wake =
        || WAKERS.lock().unwrap_or_else(PoisonError::into_inner).drain(..).for_each(Waker::wake);
    outside.spawn(wake).unwrap().join().unwrap();
    world.pass(seconds(60));
    let message = &world.faults[0].failure.message;
    assert!(message.starts_with("not deterministic: "), "{message}");
    assert!(message.contains("by the thread outsider"), "{message}");
    assert!(message.contains("its last durable call is at "), "{message}");
    assert!(message.contains("rules.rs:"), "{message}");
    assert!(world.run.open());
}

#[test]
fn a_run_that_waits_for_nothing_durable_is_caught() {
    let world = World::<Careless>::start(false);
    let fault = &world.faults[0];
    assert_eq!(fault.cause, TaskFailureCause::WorkerFailure);
    assert!(fault.failure.message.contains("waits for something that is not durable"));
    assert!(fault.failure.message.contains("it has made no durable call"));
    assert!(world.run.open());
}

#[derive(Default)]
struct Panics;

#[workflow]
impl Panics {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(seconds(1)).await?;
        panic!("the cup is empty");
    }

    #[query]
    fn odd(&self) -> bool {
        panic!("no query")
    }
}

#[test]
fn a_panic_fails_the_task_and_not_the_run() {
    let mut world = World::<Panics>::start(());
    let failure = world.query_raw("odd", &Vec::new()).unwrap_err();
    assert_eq!(failure.message, "query odd panicked: no query");
    world.pass(seconds(1));
    let message = &world.faults[0].failure.message;
    assert!(message.starts_with("workflow code panicked: the cup is empty"), "{message}");
    assert!(message.contains("its last durable call is at "), "{message}");
    assert!(world.run.open());
    assert_eq!(world.history().last(), Some(&"TimerFired"));
}

#[derive(Default)]
struct Typed;

#[workflow]
impl Typed {
    #[run]
    async fn run(_ctx: &Context<Self>, _number: u32) {}
}

#[test]
fn arguments_that_cannot_be_read_stop_the_task() {
    use abide_core::{event::RunSpec, payload::Payload, run::StartRun};
    let spec = RunSpec {
        workflow_type: "Typed".into(),
        queue: "main".into(),
        input: vec![Payload::new("\"seven\"")],
        ..RunSpec::default()
    };
    let start = StartRun::new(crate::world::key("typed"), crate::world::run_id(1), spec);
    let world = World::<Typed>::begin(start);
    let message = &world.faults[0].failure.message;
    assert!(message.starts_with("input of workflow Typed: cannot be read as u32"), "{message}");
}

#[derive(Default)]
struct Dice {
    drawn: Vec<String>,
}

#[workflow]
impl Dice {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<String>> {
        for _ in 0..2 {
            let fraction = ctx.random::<f64>();
            assert!((0.0..1.0).contains(&fraction));
            let drawn = format!(
                "{} {} {:?} {} {fraction} {}",
                ctx.random::<u64>(),
                ctx.random::<bool>(),
                ctx.random::<[u8; 3]>(),
                ctx.uuid(),
                ctx.now()
            );
            ctx.write(|state| state.drawn.push(drawn));
            ctx.sleep(seconds(1)).await?;
        }
        Ok(ctx.read(|state| state.drawn.clone()))
    }

    #[query]
    fn drawn(&self) -> Vec<String> {
        self.drawn.clone()
    }
}

#[test]
fn random_values_are_the_same_on_replay_and_differ_from_one_another() {
    let mut world = World::<Dice>::start(());
    world.pass(seconds(1));
    world.evict();
    world.pass(seconds(1));
    let drawn = world.result().unwrap();
    assert_eq!(world.query(Dice::DRAWN, ()), drawn);
    assert_ne!(drawn[0], drawn[1]);
    let uuid = drawn[0].split(' ').find_map(|part| Uuid::parse_str(part).ok()).unwrap();
    assert_eq!(uuid.get_version_num(), 4);
    // Pinned: histories of the past depend on it.
    assert_eq!(drawn[0].split(' ').next(), Some("16957746591438126684"));
    world.check();
}

#[derive(Default)]
struct Loud;

#[workflow]
impl Loud {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        tracing::info!("before");
        ctx.sleep(seconds(1)).await?;
        tracing::info!("after");
        Ok(())
    }
}

#[test]
fn logging_is_silent_on_replay_and_names_the_run() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let subscriber = crate::log::Lines(lines.clone());
    tracing::subscriber::with_default(subscriber, || {
        // A test without subscriber may be the first to come to the lines of code that log, and they
        // would remember that nobody listens.
        World::<Loud>::start(());
        tracing::callsite::rebuild_interest_cache();
        lines.lock().unwrap().clear();
        // The world answers every task twice, so that each live line comes twice.
        let mut world = World::<Loud>::start(());
        world.pass(seconds(1));
        let live = lines.lock().unwrap().len();
        assert_eq!(live, 4);
        world.query_raw("none", &Vec::new()).unwrap_err();
        assert_eq!(lines.lock().unwrap().len(), live);
    });
    let lines = lines.lock().unwrap();
    let run = crate::world::run_id(1);
    let expected = format!(
        "workflow namespace=default workflow_id=order-1 run_id={run} workflow_type=Loud attempt=1: \
         before"
    );
    assert_eq!(lines[0], expected);
    assert!(lines[2].ends_with(": after"));
}
