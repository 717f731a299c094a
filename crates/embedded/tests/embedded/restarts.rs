//! Workers and engines that stop in the middle of a run: it continues where it was.

use std::{path::Path, time::Duration};

use abide::{Context, Worker};
use abide_core::event::Fact;
use abide_embedded::{Builder, Embedded, OpenError};
use abide_sdk::{activities, workflow};
use abide_store_sqlite::OpenError as FileError;

use crate::world::{Gate, Running, manual_clock};

/// Counts its calls.
struct Counted(Gate);

#[activities]
impl Counted {
    #[activity]
    async fn step(&self, number: u32) -> u32 {
        self.0.open();
        self.0.pass().await;
        number + 1
    }
}

/// Three steps, with a signal between each two.
#[derive(Default)]
struct Journey {
    steps: u32,
}

#[workflow]
impl Journey {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        for step in 0..3 {
            let steps = ctx.activity(Counted::step, step).await?;
            ctx.write(|state| state.steps = steps);
            ctx.receive(Self::GO).await?;
        }
        Ok(ctx.read(|state| state.steps))
    }

    #[signal]
    fn go();

    #[query]
    fn steps(&self) -> u32 {
        self.steps
    }
}

fn worker(engine: &Embedded, gate: &Gate) -> Worker {
    engine.worker().workflow::<Journey>().activities(Counted(gate.clone()))
}

/// An engine that does not wait for a lost worker to reconnect.
fn impatient() -> Builder {
    Embedded::builder().worker_grace(Duration::ZERO)
}

/// Waits until the journey waits for its next signal.
async fn waiting(handle: &abide::WorkflowHandle<Journey>, times: usize) {
    let mut follower = handle.follow_history();
    let mut waits = 0;
    while waits < times {
        let events = follower.next().await.unwrap().unwrap();
        let wait = |fact: &Fact| matches!(fact, Fact::TimerStarted(_));
        waits += events.iter().filter(|event| wait(event.fact())).count();
    }
}

#[tokio::test]
async fn a_killed_worker_is_replaced_and_nothing_runs_twice() {
    let engine = Embedded::in_memory().await;
    let gate = Gate::new();
    let handle = engine.client().start::<Journey>("journey", ()).await.unwrap();
    for step in 1..=3 {
        let running = Running::start(worker(&engine, &gate));
        waiting(&handle, step).await;
        assert_eq!(handle.query(Journey::STEPS, ()).await.unwrap(), u32::try_from(step).unwrap());
        running.kill().await;
        handle.signal(Journey::GO, ()).await.unwrap();
    }
    let running = Running::start(worker(&engine, &gate));
    assert_eq!(handle.result().await.unwrap(), 3);
    assert_eq!(gate.visits(), 3, "every activity ran once");
    running.stop().await;
}

#[tokio::test]
async fn a_run_goes_on_when_the_engine_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("abide.db");
    let gate = Gate::new();
    for step in 1..=3 {
        let engine = Embedded::open(&path).await.unwrap();
        let client = engine.client();
        let running = Running::start(worker(&engine, &gate));
        let handle = match step {
            1 => client.start::<Journey>("journey", ()).await.unwrap(),
            _ => client.handle::<Journey>("journey"),
        };
        waiting(&handle, step).await;
        handle.signal(Journey::GO, ()).await.unwrap();
        if step == 3 {
            assert_eq!(handle.result().await.unwrap(), 3);
        }
        running.stop().await;
        engine.shutdown().await;
    }
    assert_eq!(gate.visits(), 3, "every activity ran once");
}

#[tokio::test]
async fn a_run_goes_on_after_a_hard_end_of_engine_and_worker() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("abide.db");
    let gate = Gate::new();
    let engine = impatient().open(&path).await.unwrap();
    let running = Running::start(worker(&engine, &gate));
    let handle = engine.client().start::<Journey>("journey", ()).await.unwrap();
    waiting(&handle, 1).await;
    handle.signal(Journey::GO, ()).await.unwrap();
    running.kill().await;
    drop((engine, handle));

    let engine = open_when_free(impatient, &path).await;
    let running = Running::start(worker(&engine, &gate));
    let handle = engine.client().handle::<Journey>("journey");
    for step in 2..=3 {
        waiting(&handle, step).await;
        handle.signal(Journey::GO, ()).await.unwrap();
    }
    assert_eq!(handle.result().await.unwrap(), 3);
    running.stop().await;
    engine.shutdown().await;
}

/// No time passes here, so the engine cannot have waited for the worker to reconnect.
#[tokio::test]
async fn an_activity_that_ended_with_its_engine_is_repeated_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("abide.db");
    let builder = || Embedded::builder().clock(manual_clock());
    let gate = Gate::new();
    let worker =
        |engine: &Embedded| engine.worker().workflow::<Cut>().activities(Held(gate.clone()));
    let engine = builder().open(&path).await.unwrap();
    let running = Running::start(worker(&engine));
    engine.client().start::<Cut>("cut", ()).await.unwrap();
    gate.visitor().await;
    running.kill().await;
    drop(engine);

    let engine = open_when_free(builder, &path).await;
    let running = Running::start(worker(&engine));
    gate.visitor().await;
    gate.open();
    assert_eq!(engine.client().handle::<Cut>("cut").result().await.unwrap(), 2);
    running.stop().await;
}

/// A dropped engine releases its file once its tasks have noticed.
async fn open_when_free(builder: impl Fn() -> Builder, path: &Path) -> Embedded {
    loop {
        match builder().open(path).await {
            Ok(engine) => return engine,
            Err(OpenError::File(FileError::InUse { .. })) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn an_activity_that_was_cut_off_is_repeated() {
    let engine = impatient().in_memory().await;
    let gate = Gate::new();
    let handle = engine.client().start::<Cut>("cut", ()).await.unwrap();
    let worker = || engine.worker().workflow::<Cut>().activities(Held(gate.clone()));
    let running = Running::start(worker());
    gate.visitor().await;
    running.kill().await;
    let running = Running::start(worker());
    gate.visitor().await;
    gate.open();
    assert_eq!(handle.result().await.unwrap(), 2);
    running.stop().await;
}

struct Held(Gate);

#[activities]
impl Held {
    #[activity]
    async fn hold(&self) -> u32 {
        self.0.pass().await;
        self.0.visits()
    }
}

#[derive(Default)]
struct Cut;

#[workflow]
impl Cut {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        ctx.activity(Held::hold, ()).await
    }
}

#[tokio::test]
async fn runs_that_do_not_fit_in_memory_are_replayed() {
    let engine = Embedded::in_memory().await;
    let gate = Gate::new();
    let worker = worker(&engine, &gate).workflow_threads(1).max_cached_runs(1);
    let running = Running::start(worker);
    let client = engine.client();
    let mut handles = Vec::new();
    for n in 0..10 {
        handles.push(client.start::<Journey>(format!("journey-{n}"), ()).await.unwrap());
    }
    for step in 1..=3 {
        for handle in &handles {
            waiting(handle, step).await;
            handle.signal(Journey::GO, ()).await.unwrap();
        }
    }
    for handle in &handles {
        assert_eq!(handle.result().await.unwrap(), 3);
    }
    assert_eq!(gate.visits(), 30, "every activity ran once");
    running.stop().await;
}
