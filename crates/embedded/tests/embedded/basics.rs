//! Runs with activities and sleeps, and how they end.

use abide::{
    ActivityError, ClientError, Context, Worker, WorkerError,
    list::{RunFilter, RunStatus},
};
use abide_core::event::Fact;
use abide_embedded::{Embedded, clock::Clock};
use abide_sdk::{activity, workflow};
use tokio::task::JoinSet;

use crate::world::{Running, advance, manual_clock, seconds, until};

#[activity]
async fn greet(name: String) -> Result<String, std::io::Error> {
    Ok(format!("Hello, {name}!"))
}

#[activity]
async fn refuse(why: String) -> Result<(), ActivityError> {
    Err(ActivityError::new(why).non_retryable())
}

#[derive(Default)]
struct Hello;

#[workflow]
impl Hello {
    #[run]
    async fn run(ctx: &Context<Self>, name: String) -> abide::Result<String> {
        ctx.activity(greet, name).await
    }
}

#[derive(Default)]
struct Refused;

#[workflow]
impl Refused {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.activity(refuse, "the shop is closed").await
    }
}

#[derive(Default)]
struct Sleeper;

#[workflow]
impl Sleeper {
    #[run]
    async fn run(ctx: &Context<Self>, days: u64) -> abide::Result<()> {
        ctx.sleep(seconds(days * 24 * 3600)).await
    }
}

/// Fails on every attempt.
#[derive(Default)]
struct Broken;

#[workflow]
impl Broken {
    #[run]
    async fn run(_ctx: &Context<Self>) -> abide::Result<()> {
        panic!("the code is broken")
    }
}

/// Continues as itself, counting down.
#[derive(Default)]
struct Countdown;

#[workflow]
impl Countdown {
    #[run]
    async fn run(ctx: &Context<Self>, left: u32) -> abide::Result<String> {
        if left == 0 { Ok("lift-off".into()) } else { Err(ctx.continue_as_new(left - 1)) }
    }
}

fn worker(engine: &Embedded) -> Worker {
    engine
        .worker()
        .workflow::<Hello>()
        .workflow::<Refused>()
        .workflow::<Sleeper>()
        .workflow::<Broken>()
        .workflow::<Countdown>()
        .activity(greet)
        .activity(refuse)
}

#[tokio::test]
async fn a_hello_has_its_result() {
    let engine = Embedded::in_memory().await;
    let running = Running::start(worker(&engine));
    let handle = engine.client().start::<Hello>("hello", "Ada").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "Hello, Ada!");
    let description = handle.describe().await.unwrap();
    assert_eq!(description.status, RunStatus::Completed);
    assert_eq!(description.workflow_type, "Hello");
    running.stop().await;
    engine.shutdown().await;
}

#[tokio::test]
async fn a_start_without_an_id_draws_one() {
    let engine = Embedded::in_memory().await;
    let running = Running::start(worker(&engine));
    let client = engine.client();
    let one = client.start_new::<Hello>("Ada").await.unwrap();
    let other = client.start_new::<Hello>("Bob").await.unwrap();
    assert_ne!(one.id(), other.id());
    let again = client.handle::<Hello>(one.id().clone());
    assert_eq!(again.result().await.unwrap(), "Hello, Ada!");
    assert_eq!(other.result().await.unwrap(), "Hello, Bob!");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_runs_at_once_on_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Embedded::open(folder.path().join("abide.db")).await.unwrap();
    let running = Running::start(worker(&engine));
    let client = engine.client();
    let mut runs = JoinSet::new();
    for n in 0..200 {
        let start = client.start::<Hello>(format!("hello-{n}"), n.to_string());
        runs.spawn(async move {
            let handle = start.await.unwrap();
            assert_eq!(handle.result().await.unwrap(), format!("Hello, {n}!"));
        });
    }
    runs.join_all().await;
    let filter = RunFilter::new().status(RunStatus::Completed);
    assert_eq!(client.count_runs(filter).await.unwrap(), 200);
    running.stop().await;
    engine.shutdown().await;
}

#[tokio::test]
async fn the_failure_of_an_activity_fails_the_run() {
    let engine = Embedded::in_memory().await;
    let running = Running::start(worker(&engine));
    let handle = engine.client().start::<Refused>("refused", ()).await.unwrap();
    let Err(ClientError::RunFailed(failure)) = handle.result().await else {
        panic!("the run did not fail");
    };
    let chain = failure.chain();
    let messages: Vec<_> = chain.map(|failure| failure.message()).collect();
    assert!(messages.iter().any(|text| text.contains("the shop is closed")), "{messages:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_sleep_ends_when_the_clock_says_so_and_not_before() {
    let clock = manual_clock();
    let engine = Embedded::builder().clock(clock.clone()).in_memory().await;
    let running = Running::start(worker(&engine));
    let handle = engine.client().start::<Sleeper>("sleeper", 30).await.unwrap();
    let history = until(&handle, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    let month = seconds(30 * 24 * 3600);
    advance(&clock, month - seconds(1));
    assert_eq!(handle.describe().await.unwrap().status, RunStatus::Running);
    advance(&clock, seconds(1));
    handle.result().await.unwrap();
    let begin = history[0].time();
    assert_eq!(clock.now(), begin.saturating_add(month));
    let last = handle.history().await.unwrap().pop().unwrap();
    assert_eq!(last.time(), begin.saturating_add(month));
    running.stop().await;
}

#[tokio::test]
async fn code_that_panics_is_reported_and_leaves_the_run_open() {
    let engine = Embedded::in_memory().await;
    let running = Running::start(worker(&engine));
    let handle = engine.client().start::<Broken>("broken", ()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TaskFailed(_))).await;
    let description = handle.describe().await.unwrap();
    assert_eq!(description.status, RunStatus::Running);
    let trouble = description.trouble.unwrap();
    assert!(trouble.failure.message().contains("the code is broken"), "{trouble:?}");
    handle.terminate("it never works").await.unwrap();
    let error = handle.result().await.unwrap_err();
    assert_eq!(error, ClientError::RunTerminated("it never works".into()));
    running.stop().await;
}

#[tokio::test]
async fn a_worker_that_lacks_the_workflow_says_what_it_has() {
    let engine = Embedded::in_memory().await;
    let running = Running::start(engine.worker().workflow::<Hello>().activity(greet));
    let handle = engine.client().start::<Countdown>("countdown", 1).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TaskFailed(_))).await;
    let trouble = handle.describe().await.unwrap().trouble.unwrap();
    let message = trouble.failure.message();
    assert!(message.contains("Countdown is not registered"), "{message}");
    assert!(message.ends_with("it has: Hello"), "{message}");
    running.stop().await;
}

#[tokio::test]
async fn a_result_is_followed_over_all_runs() {
    let engine = Embedded::in_memory().await;
    let running = Running::start(worker(&engine));
    let handle = engine.client().start::<Countdown>("countdown", 3).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "lift-off");
    let first = handle.clone().run(handle.run_id().unwrap()).describe().await.unwrap();
    assert_eq!(first.status, RunStatus::ContinuedAsNew);
    running.stop().await;
}

#[tokio::test]
async fn a_run_that_takes_too_long_times_out() {
    let clock = manual_clock();
    let engine = Embedded::builder().clock(clock.clone()).in_memory().await;
    let running = Running::start(worker(&engine));
    let start = engine.client().start::<Sleeper>("sleeper", 30).run_timeout(seconds(60));
    let handle = start.await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    advance(&clock, seconds(60));
    assert_eq!(handle.result().await.unwrap_err(), ClientError::RunTimedOut);
    running.stop().await;
}

#[tokio::test]
async fn a_worker_with_nothing_to_run_or_two_of_a_name_does_not_start() {
    let engine = Embedded::in_memory().await;
    let error = engine.worker().run().await.unwrap_err().to_string();
    assert!(error.contains("neither workflows nor activities"), "{error}");
    let twice = engine.worker().workflow::<Hello>().workflow::<Hello>();
    let error = twice.run().await.unwrap_err().to_string();
    assert!(error.contains("Hello is already registered"), "{error}");
}

#[tokio::test]
async fn nobody_waits_for_an_engine_that_was_shut_down() {
    let engine = Embedded::builder().clock(manual_clock()).in_memory().await;
    let client = engine.client();
    let working = tokio::spawn(worker(&engine).build_id("test").run());
    let handle = client.start::<Sleeper>("sleeper", 30).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    let (result, ()) = tokio::join!(handle.result(), engine.shutdown());
    assert!(matches!(result, Err(ClientError::NoAnswer(_))), "{result:?}");
    let ended = working.await.unwrap();
    assert!(matches!(ended, Err(WorkerError::EngineGone(_))), "{ended:?}");
    let late = client.start::<Sleeper>("late", 1).await.unwrap_err();
    assert_eq!(late.to_string(), "there will be no answer: the engine was shut down");
}
