//! Activities: attempts, errors, heartbeats, queues of one machine, and values that are recorded.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use abide::{
    Client, ClientError, Failure, FailureKind, Timestamp, Worker, WorkflowHandle, event::Fact,
    prelude::*, worker::own_queue,
};
use abide_core::run::ShownPhase;
use abide_sdk_testing::TestEnvironment;

use crate::{
    gate::Gate,
    site::{Site, until},
    table::page,
};

page!("activities.md", "activities.rs");

const MINUTE: Duration = Duration::from_secs(60);

/// What the activities of a test share with it.
#[derive(Clone)]
struct Desk(Arc<State>);

struct State {
    gate: Gate,
    queue: String,
}

fn desk() -> Desk {
    Desk(Arc::new(State { gate: Gate::new(), queue: own_queue("desk") }))
}

#[activities]
impl Desk {
    #[activity]
    async fn copy(&self, text: String) -> String {
        text
    }

    /// Fails as its input says, until this attempt.
    #[activity]
    async fn fails(
        &self,
        ctx: ActivityContext,
        trouble: Trouble,
        until: u32,
    ) -> Result<String, ActivityError> {
        if ctx.attempt() >= until {
            return Ok(format!("attempt {}", ctx.attempt()));
        }
        let error = ActivityError::new("jammed").error_type("Jam");
        Err(match trouble {
            Trouble::Plain => error,
            Trouble::Later => error.retry_after(10 * MINUTE),
            Trouble::Final => error.non_retryable(),
        })
    }

    /// Copies some pages, reports, and comes to the gate; the next attempt copies the rest.
    #[activity]
    async fn pages(&self, ctx: ActivityContext) -> Result<String, ActivityError> {
        let Some(done) = ctx.heartbeat_details::<u32>()? else {
            ctx.heartbeat(&4_u32)?;
            self.0.gate.pass().await;
            return Ok("copied all pages".into());
        };
        Ok(format!("went on after page {done}"))
    }

    /// Comes to the gate, and stops when it should.
    #[activity]
    async fn waits(&self, ctx: ActivityContext) -> Result<String, ActivityError> {
        loop {
            ctx.heartbeat(&())?;
            tokio::select! {
                () = ctx.cancelled() => return Err(ActivityError::cancelled()),
                () = self.0.gate.pass() => {}
            }
        }
    }

    /// Says where it ran.
    #[activity]
    async fn here(&self) -> String {
        self.0.queue.clone()
    }
}

#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
enum Trouble {
    Plain,
    Later,
    Final,
}

#[derive(serde::Serialize, serde::Deserialize)]
enum Job {
    Copy,
    Fails { trouble: Trouble, until: u32, retry: RetryPolicy },
    Pages,
    PagesOnce,
    GiveUp,
    OneMachine,
}

#[derive(Default)]
struct Clerk;

#[workflow]
impl Clerk {
    #[run]
    async fn run(ctx: &Context<Self>, job: Job) -> abide::Result<String> {
        match job {
            Job::Copy => ctx.activity(Desk::copy, "letter").await,
            Job::Fails { trouble, until, retry } => {
                ctx.activity(Desk::fails, (trouble, until)).retry(retry).await
            }
            Job::Pages => {
                ctx.activity(Desk::pages, ())
                    .start_to_close(60 * MINUTE)
                    .heartbeat_timeout(MINUTE)
                    .await
            }
            Job::PagesOnce => ctx.activity(Desk::pages, ()).at_most_once().await,
            Job::GiveUp => {
                select! {
                    text = ctx.activity(Desk::waits, ()).start_to_close(60 * MINUTE) => return text,
                    _ = ctx.sleep(MINUTE) => {}
                }
                ctx.sleep(MINUTE).await?;
                Ok("gave up".into())
            }
            Job::OneMachine => {
                let queue = ctx.activity(Desk::here, ()).await?;
                let call = ctx.activity(Desk::copy, "file").queue(queue);
                call.schedule_to_start(MINUTE).await
            }
        }
    }
}

fn set_up(worker: Worker, desk: &Desk) -> Worker {
    worker.workflow::<Clerk>().activities(desk.clone())
}

async fn clerk(client: &Client, job: Job) -> WorkflowHandle<Clerk> {
    client.start::<Clerk>("clerk", job).await.unwrap()
}

/// Runs a job on its own; also returns the time that it took.
async fn play(situation: &str, job: Job) -> (Result<String, ClientError>, Duration) {
    let (env, desk) = (TestEnvironment::new().await, desk());
    env.worker(|worker| set_up(worker, &desk)).await.unwrap();
    let began: Timestamp = env.now();
    let run = clerk(&env.client(), job).await;
    let result = run.result().await;
    PAGE.check(situation, &run.history().await.unwrap());
    (result, env.now().saturating_since(began))
}

fn fails(trouble: Trouble, until: u32, retry: RetryPolicy) -> Job {
    Job::Fails { trouble, until, retry }
}

#[tokio::test]
async fn the_activity_completes() {
    let (result, _) = play("the activity completes", Job::Copy).await;
    assert_eq!(result.unwrap(), "letter");
}

#[tokio::test]
async fn an_attempt_fails_and_the_next_one_succeeds() {
    let job = fails(Trouble::Plain, 3, RetryPolicy::default());
    let (result, took) = play("an attempt fails and the next one succeeds", job).await;
    assert_eq!((result.unwrap().as_str(), took), ("attempt 3", Duration::from_secs(1 + 2)));
}

#[tokio::test]
async fn an_error_says_when_to_try_again() {
    let job = fails(Trouble::Later, 2, RetryPolicy::default());
    let (result, took) = play("an error says when to try again", job).await;
    assert_eq!((result.unwrap().as_str(), took), ("attempt 2", 10 * MINUTE));
}

#[tokio::test]
async fn an_error_says_that_trying_again_is_useless() {
    let job = fails(Trouble::Final, 2, RetryPolicy::default());
    let (result, took) = play("an error says that trying again is useless", job).await;
    assert!(result.unwrap_err().to_string().contains("jammed"));
    assert_eq!(took, Duration::ZERO);
}

#[tokio::test]
async fn an_error_is_of_a_type_that_the_policy_excludes() {
    let job = fails(Trouble::Plain, 2, RetryPolicy::default().no_retry_on_type("Jam"));
    let (result, took) = play("an error is of a type that the policy excludes", job).await;
    assert!(result.unwrap_err().to_string().contains("jammed"));
    assert_eq!(took, Duration::ZERO);
}

#[tokio::test]
async fn the_policy_allows_no_further_attempt() {
    let job = fails(Trouble::Plain, 9, RetryPolicy::default().maximum_attempts(2));
    let (result, took) = play("the policy allows no further attempt", job).await;
    assert!(result.unwrap_err().to_string().contains("jammed"));
    assert_eq!(took, Duration::from_secs(1));
}

#[tokio::test]
async fn an_attempt_takes_too_long() {
    let (env, desk) = (TestEnvironment::new().await, desk());
    env.hang_activity(Desk::fails);
    env.worker(|worker| set_up(worker, &desk)).await.unwrap();
    let run = clerk(&env.client(), fails(Trouble::Plain, 1, RetryPolicy::once())).await;
    let failed = run.result().await.unwrap_err();
    assert!(failed.to_string().contains("activity fails failed"), "{failed}");
    PAGE.check("an attempt takes too long", &run.history().await.unwrap());
}

/// A run whose activity stands at the gate; the engine has heard how far it came.
async fn at_the_gate(site: &Site, desk: &Desk, job: Job) -> WorkflowHandle<Clerk> {
    let run = clerk(&site.client(), job).await;
    desk.0.gate.entered().await;
    while site.shown("clerk").await.activities.iter().all(|activity| activity.heartbeat.is_none()) {
        tokio::task::yield_now().await;
    }
    run
}

#[tokio::test]
async fn the_worker_dies_and_the_next_attempt_goes_on() {
    let (site, desk) = (Site::open().await, desk());
    let first = site.work(|worker| set_up(worker, &desk));
    let run = at_the_gate(&site, &desk, Job::Pages).await;
    first.kill().await;
    let _second = site.work(|worker| set_up(worker, &desk));
    assert_eq!(run.result().await.unwrap(), "went on after page 4");
    let history = run.history().await.unwrap();
    PAGE.check("the worker dies and the next attempt goes on", &history);
}

#[tokio::test]
async fn the_engine_crashes_and_the_next_attempt_goes_on() {
    let (mut site, desk) = (Site::open().await, desk());
    let first = site.work(|worker| set_up(worker, &desk));
    at_the_gate(&site, &desk, Job::Pages).await;
    first.kill().await;
    site.reopen().await;
    let _second = site.work(|worker| set_up(worker, &desk));
    let run = site.client().handle::<Clerk>("clerk");
    assert_eq!(run.result().await.unwrap(), "went on after page 4");
    let history = run.history().await.unwrap();
    PAGE.check("the engine crashes and the next attempt goes on", &history);
}

#[tokio::test]
async fn an_attempt_is_silent_and_the_next_one_goes_on() {
    let (site, desk) = (Site::open().await, desk());
    let _worker = site.work(|worker| set_up(worker, &desk));
    let run = at_the_gate(&site, &desk, Job::Pages).await;
    site.pass(MINUTE);
    backoff(&site).await;
    site.pass(MINUTE);
    assert_eq!(run.result().await.unwrap(), "went on after page 4");
    PAGE.check("an attempt is silent and the next one goes on", &run.history().await.unwrap());
}

/// Waits until the attempt was given up.
async fn backoff(site: &Site) {
    let waits = |phase: &ShownPhase| matches!(phase, ShownPhase::Backoff { .. });
    while !site.shown("clerk").await.activities.iter().any(|activity| waits(&activity.phase)) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_worker_dies_and_twice_is_worse_than_never() {
    let (site, desk) = (Site::open().await, desk());
    let first = site.work(|worker| set_up(worker, &desk));
    let run = at_the_gate(&site, &desk, Job::PagesOnce).await;
    first.kill().await;
    let _second = site.work(|worker| set_up(worker, &desk));
    let failed = run.result().await.unwrap_err();
    let ClientError::RunFailed(failure) = &failed else { panic!("{failed}") };
    let cause = failure.causes().first().map(Failure::kind);
    assert_eq!(cause, Some(FailureKind::WorkerLost));
    let history = run.history().await.unwrap();
    PAGE.check("the worker dies and twice is worse than never", &history);
}

#[tokio::test]
async fn the_workflow_gives_it_up() {
    let (site, desk) = (Site::open().await, desk());
    let _worker = site.work(|worker| set_up(worker, &desk));
    let run = clerk(&site.client(), Job::GiveUp).await;
    desk.0.gate.entered().await;
    site.pass(MINUTE);
    until(&run, |fact| matches!(fact, Fact::ActivityCancelRequested(_))).await;
    desk.0.gate.open();
    until(&run, |fact| matches!(fact, Fact::ActivityCancelled(_))).await;
    site.pass(MINUTE);
    assert_eq!(run.result().await.unwrap(), "gave up");
    PAGE.check("the workflow gives it up", &run.history().await.unwrap());
}

#[tokio::test]
async fn work_stays_on_one_machine() {
    let (env, desk) = (TestEnvironment::new().await, desk());
    env.worker(|worker| set_up(worker, &desk)).await.unwrap();
    let queue = desk.0.queue.clone();
    env.worker(|worker| worker.queue(queue).activities(desk.clone())).await.unwrap();
    let run = clerk(&env.client(), Job::OneMachine).await;
    assert_eq!(run.result().await.unwrap(), "file");
    PAGE.check("work stays on one machine", &run.history().await.unwrap());
}

#[tokio::test]
async fn that_machine_is_gone() {
    let (env, desk) = (TestEnvironment::new().await, desk());
    env.worker(|worker| set_up(worker, &desk)).await.unwrap();
    let run = clerk(&env.client(), Job::OneMachine).await;
    let failed = run.result().await.unwrap_err();
    assert!(failed.to_string().contains("activity copy failed"), "{failed}");
    PAGE.check("that machine is gone", &run.history().await.unwrap());
}

/// Draws a value, and shows it after a sleep.
#[derive(Default)]
struct Draws;

static DRAWN: AtomicU32 = AtomicU32::new(0);

#[workflow]
impl Draws {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        let value = ctx.side_effect(|| DRAWN.fetch_add(1, Ordering::SeqCst))?;
        ctx.sleep(MINUTE).await?;
        Ok(value)
    }
}

#[tokio::test]
async fn a_value_that_is_not_deterministic() {
    let env = TestEnvironment::new().await;
    // Nothing is kept in memory, so the second task replays the first.
    env.worker(|worker| worker.workflow::<Draws>().max_cached_runs(0)).await.unwrap();
    let run = env.client().start::<Draws>("draws", ()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 0);
    assert_eq!(DRAWN.load(Ordering::SeqCst), 1, "it was drawn once");
    PAGE.check("a value that is not deterministic", &run.history().await.unwrap());
}
