//! Workers in the background: how they stop, and that none fails in silence.

use std::{io, process::Command, time::Duration};

use abide::{ClientError, Context, Worker, WorkerError};
use abide_embedded::Embedded;
use abide_sdk::workflow;
use tokio::time::timeout;
use tracing::Level;

use crate::log::Logged;

#[derive(Default)]
struct Hello;

#[workflow]
impl Hello {
    #[run]
    async fn run(_ctx: &Context<Self>, name: String) -> abide::Result<String> {
        Ok(format!("Hello, {name}!"))
    }
}

fn hello(engine: &Embedded) -> Worker {
    engine.worker().build_id("test").workflow::<Hello>()
}

/// A worker that cannot start.
fn wrong(engine: &Embedded) -> Worker {
    hello(engine).workflow::<Hello>()
}

#[tokio::test]
async fn a_worker_goes_on_without_its_handle_and_stops_when_it_is_told() {
    let engine = Embedded::in_memory().await;
    drop(hello(&engine).spawn());
    let first = engine.client().start::<Hello>("one", "Ada").await.unwrap();
    assert_eq!(first.result().await.unwrap(), "Hello, Ada!");
    hello(&engine).queue("other").spawn().stop().await.unwrap();
    engine.shutdown().await;
}

#[tokio::test]
async fn a_worker_that_cannot_start_is_logged_once_and_says_why() {
    let logged = Logged::at(Level::ERROR);
    let engine = Embedded::in_memory().await;
    let worker = wrong(&engine).spawn();
    let error = worker.await.unwrap_err();
    assert!(matches!(error, WorkerError::Registry(_)), "{error}");
    let expected = format!("the worker has failed queue=default error={error}");
    assert_eq!(logged.lines(), [expected]);
    let error = engine.worker().spawn().stop().await.unwrap_err();
    assert!(matches!(error, WorkerError::NothingToRun(_)), "{error}");
}

#[tokio::test]
async fn who_waits_for_a_result_is_told_that_the_worker_failed() {
    let engine = Embedded::in_memory().await;
    let client = engine.client();
    let before = client.start::<Hello>("before", "Ada").await.unwrap();
    let waiting = tokio::spawn({
        let before = before.clone();
        async move { before.result().await }
    });
    let reason = wrong(&engine).spawn().await.unwrap_err().to_string();
    let failed = ClientError::WorkerFailed { queue: "default".into(), reason };
    assert_eq!(waiting.await.unwrap(), Err(failed.clone()));
    assert_eq!(client.handle::<Hello>("before").result().await, Err(failed.clone()));
    let after = client.start::<Hello>("after", "Bob").await.unwrap();
    assert_eq!(after.result().await, Err(failed));
}

/// The run does not exist yet when the call looks for its worker.
#[tokio::test(start_paused = true)]
async fn who_starts_a_run_with_an_update_is_told_that_the_worker_failed_before() {
    let engine = Embedded::in_memory().await;
    let client = engine.client();
    let reason = wrong(&engine).spawn().await.unwrap_err().to_string();
    let failed = ClientError::WorkerFailed { queue: "default".into(), reason };
    let both = client.start::<Hello>("one", "Ada").with_update_untyped("rename", Vec::new());
    assert_eq!(both.await.map(|_| ()), Err(failed));
    let elsewhere = client.start::<Hello>("two", "Ada").queue("other");
    let both = elsewhere.with_update_untyped("rename", Vec::new()).into_future();
    timeout(Duration::from_secs(120), both).await.map(|_| ()).unwrap_err();
}

#[tokio::test]
async fn a_failed_worker_is_forgotten_when_another_serves_its_queue() {
    let engine = Embedded::in_memory().await;
    let run = engine.client().start::<Hello>("one", "Ada").await.unwrap();
    wrong(&engine).spawn().await.unwrap_err();
    hello(&engine).spawn();
    assert_eq!(run.result().await.unwrap(), "Hello, Ada!");
    wrong(&engine).spawn().await.unwrap_err();
    let next = engine.client().start::<Hello>("two", "Bob").await.unwrap();
    assert_eq!(next.result().await.unwrap(), "Hello, Bob!");
}

#[tokio::test]
async fn a_failed_worker_of_another_queue_is_no_matter() {
    let engine = Embedded::in_memory().await;
    wrong(&engine).queue("other").spawn().await.unwrap_err();
    let run = engine.client().start::<Hello>("one", "Ada").await.unwrap();
    let (result, ()) = tokio::join!(run.result(), async {
        // The other queue's failure is looked at before this one has a worker.
        tokio::task::yield_now().await;
        drop(hello(&engine).spawn());
    });
    assert_eq!(result.unwrap(), "Hello, Ada!");
}

#[tokio::test]
async fn a_worker_returns_what_stopped_it() {
    let engine = Embedded::in_memory().await;
    hello(&engine).run_until(async {}).await.unwrap();
    assert_eq!(hello(&engine).run_until(async { Some(7) }).await.unwrap(), Some(7));
    let seven = async { Ok::<_, io::Error>(7) };
    assert_eq!(hello(&engine).run_until(seven).await.unwrap(), 7);
    let broken = async { Err::<(), _>(io::Error::other("no signals here")) };
    let error = hello(&engine).run_until(broken).await.unwrap_err();
    assert_eq!(error.to_string(), "the worker was stopped by an error: no signals here");
}

/// Two minutes that pass immediately, in which starts look for workers again.
async fn two_minutes() {
    tokio::time::sleep(Duration::from_secs(120)).await;
}

/// Checks that there is one warning, of the queue `default` and with this reason.
#[track_caller]
fn check_warning(logged: &Logged, reason: &str) {
    let lines = logged.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in ["no worker takes the run's task", "queue=default", reason] {
        assert!(lines[0].contains(part), "{part} in {lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_on_a_queue_without_workers_warns_once() {
    let engine = Embedded::in_memory().await;
    let logged = Logged::at(Level::WARN);
    let client = engine.client();
    for number in 0..3 {
        client.start::<Hello>(format!("run {number}"), "Ada").await.unwrap();
        two_minutes().await;
    }
    check_warning(&logged, "workflow=default/run 0");
    check_warning(&logged, "the client has no worker in this process");
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_start_that_warned_does_not_warn_again() {
    let engine = Embedded::in_memory().await;
    let logged = Logged::at(Level::WARN);
    let run = engine.client().start::<Hello>("one", "Ada").await.unwrap();
    timeout(Duration::from_secs(120), run.result()).await.unwrap_err();
    check_warning(&logged, "workflow=default/one");
}

#[tokio::test(start_paused = true)]
async fn a_worker_of_another_queue_is_named_in_the_warning() {
    let engine = Embedded::in_memory().await;
    let logged = Logged::at(Level::WARN);
    let _worker = hello(&engine).queue("letters").spawn();
    engine.client().start::<Hello>("one", "Ada").await.unwrap();
    two_minutes().await;
    check_warning(&logged, "serve other queues, such as letters");
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_lost_its_worker_is_warned_of_again() {
    let engine = Embedded::in_memory().await;
    let logged = Logged::at(Level::WARN);
    let client = engine.client();
    let lines = async |id: &str| {
        client.start::<Hello>(id, "Ada").await.unwrap();
        two_minutes().await;
        logged.lines().len()
    };
    assert_eq!(lines("no worker yet").await, 1);
    let worker = hello(&engine).spawn();
    assert_eq!(lines("taken").await, 1, "{:?}", logged.lines());
    worker.stop().await.unwrap();
    assert_eq!(lines("no worker any more").await, 2);
    assert_eq!(lines("still none").await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_waits_for_a_worker_warns_of_a_run_started_elsewhere() {
    let engine = Embedded::in_memory().await;
    let started = engine.client().start::<Hello>("one", "Ada").await;
    // A client of its own, which has started nothing.
    let other = abide::Client::new(engine.client().transport().clone());
    two_minutes().await;
    let logged = Logged::at(Level::WARN);
    let run = other.handle::<Hello>(started.unwrap().id().clone());
    timeout(Duration::from_secs(120), run.result()).await.unwrap_err();
    check_warning(&logged, "workflow=default/one");
}

#[tokio::test(start_paused = true)]
async fn an_update_that_waits_for_a_worker_warns_too() {
    let engine = Embedded::in_memory().await;
    let start = engine.client().start::<Hello>("one", "Ada");
    let logged = Logged::at(Level::WARN);
    let both = start.with_update_untyped("rename", Vec::new()).into_future();
    timeout(Duration::from_secs(120), both).await.unwrap_err();
    check_warning(&logged, "workflow=default/one");
    let other = abide::Client::new(engine.client().transport().clone());
    let update = other.handle::<Hello>("one").update_untyped("rename", Vec::new()).into_future();
    let logged = Logged::at(Level::WARN);
    timeout(Duration::from_secs(120), update).await.unwrap_err();
    check_warning(&logged, "workflow=default/one");
}

#[tokio::test]
async fn a_worker_that_fails_in_a_task_of_its_own_fails_the_result_too() {
    let engine = Embedded::in_memory().await;
    let run = engine.client().start::<Hello>("one", "Ada").await.unwrap();
    drop(tokio::spawn(engine.worker().run()));
    let error = run.result().await.unwrap_err();
    assert!(matches!(error, ClientError::WorkerFailed { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_and_one_that_is_delayed_do_not_warn() {
    let engine = Embedded::in_memory().await;
    let client = engine.client();
    let logged = Logged::at(Level::WARN);
    let paused = client.start::<Hello>("paused", "Ada").await.unwrap();
    paused.pause("later").await.unwrap();
    let late = client.start::<Hello>("late", "Ada").delay(Duration::from_secs(86_400));
    let late = late.await.unwrap();
    let both = async { tokio::join!(paused.result(), late.result()) };
    timeout(Duration::from_secs(120), both).await.unwrap_err();
    assert_eq!(logged.lines(), Vec::<String>::new());
}

/// In a process of its own, because a log that another test sets up counts for all.
#[test]
fn without_a_log_standard_error_says_why_nothing_happens() {
    let alone = ["--exact", "background::a_program_without_a_log", "--ignored", "--nocapture"];
    let program = Command::new(std::env::current_exe().unwrap()).args(alone).output().unwrap();
    let said = String::from_utf8(program.stderr).unwrap();
    for line in [
        "abide: workflow default/one: no worker takes the run's task from the queue default: ",
        "abide: the worker of queue other has failed: ",
    ] {
        assert_eq!(said.matches(line).count(), 1, "{line} in {said}");
    }
}

#[tokio::test(start_paused = true)]
#[ignore = "a part of another test"]
async fn a_program_without_a_log() {
    let engine = Embedded::in_memory().await;
    engine.client().start::<Hello>("one", "Ada").await.unwrap();
    two_minutes().await;
    wrong(&engine).queue("other").spawn().await.unwrap_err();
}
