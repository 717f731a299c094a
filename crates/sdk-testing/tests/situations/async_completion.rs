//! Activities that are completed from outside.

use std::{sync::Arc, time::Duration};

use abide::client::{HistoryEvent, RefusalKind};
use abide::{Client, ClientError, Worker, WorkflowHandle, event::Fact, prelude::*};
use abide_core::run::ShownPhase;
use abide_sdk_testing::TestEnvironment;
use tokio::sync::{Mutex, mpsc};

use crate::{
    gate::Gate,
    site::{Site, until},
    table::page,
};

page!("async-completion.md", "async_completion.rs");

const MINUTE: Duration = Duration::from_secs(60);

/// Where activities leave their tokens.
#[derive(Clone)]
struct Desk(Arc<Tokens>);

struct Tokens {
    given: mpsc::UnboundedSender<String>,
    taken: Mutex<mpsc::UnboundedReceiver<String>>,
    gate: Gate,
}

impl Desk {
    fn new() -> Self {
        let (given, taken) = mpsc::unbounded_channel();
        Self(Arc::new(Tokens { given, taken: Mutex::new(taken), gate: Gate::new() }))
    }

    /// The next token.
    async fn token(&self) -> String {
        self.0.taken.lock().await.recv().await.unwrap()
    }
}

#[activities]
impl Desk {
    /// Leaves its token here, and the rest to others.
    #[activity]
    async fn ask(&self, ctx: ActivityContext) -> Result<u32, ActivityError> {
        self.0.given.send(ctx.token()?).map_err(ActivityError::from_source)?;
        Err(ActivityError::completed_later())
    }

    /// The same, but it does not return before the test wants it.
    #[activity]
    async fn linger(&self, ctx: ActivityContext) -> Result<u32, ActivityError> {
        self.0.given.send(ctx.token()?).map_err(ActivityError::from_source)?;
        self.0.gate.pass().await;
        Err(ActivityError::completed_later())
    }
}

/// How the workflow asks.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
enum Way {
    Patient,
    Once,
    Heartbeats,
    Impatient,
    Lingers,
}

#[derive(Default)]
struct Asks;

#[workflow]
impl Asks {
    #[run]
    async fn run(ctx: &Context<Self>, way: Way) -> abide::Result<u32> {
        let call = ctx.activity(Desk::ask, ()).start_to_close(10 * MINUTE);
        match way {
            Way::Patient => call.await,
            Way::Once => call.retry(RetryPolicy::once()).await,
            Way::Heartbeats => call.heartbeat_timeout(MINUTE).retry(RetryPolicy::once()).await,
            Way::Impatient => {
                select! {
                    result = call => return result,
                    _ = ctx.sleep(MINUTE) => {}
                }
                ctx.sleep(MINUTE).await?;
                Ok(0)
            }
            Way::Lingers => ctx.activity(Desk::linger, ()).await,
        }
    }
}

fn set_up(worker: Worker, desk: &Desk) -> Worker {
    worker.workflow::<Asks>().activities(desk.clone())
}

/// An environment with a worker and a run whose token is at the desk.
struct Play {
    env: TestEnvironment,
    desk: Desk,
    client: Client,
    run: WorkflowHandle<Asks>,
}

impl Play {
    async fn begin(way: Way) -> Self {
        let (env, desk) = (TestEnvironment::new().await, Desk::new());
        env.worker(|worker| set_up(worker, &desk)).await.unwrap();
        let client = env.client();
        let run = client.start::<Asks>("asks", way).await.unwrap();
        Self { env, desk, client, run }
    }

    /// Ends the play: the run has this result, and its history is that of the situation.
    async fn completes(self, situation: &str, result: u32) {
        assert_eq!(self.run.result().await.unwrap(), result);
        PAGE.check(situation, &self.run.history().await.unwrap());
    }

    async fn fails(self, situation: &str, why: &str) {
        let failed = self.run.result().await.unwrap_err().to_string();
        assert!(failed.contains(why), "{failed}");
        PAGE.check(situation, &self.run.history().await.unwrap());
    }
}

fn refused(result: Result<(), ClientError>) -> RefusalKind {
    match result {
        Err(ClientError::Refused(refusal)) => refusal.kind(),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn it_is_completed_by_its_token() {
    let play = Play::begin(Way::Patient).await;
    let token = play.desk.token().await;
    play.client.activity(&token).complete(&7_u32).await.unwrap();
    play.completes("it is completed by its token", 7).await;
}

#[tokio::test]
async fn it_is_completed_by_its_id() {
    let play = Play::begin(Way::Patient).await;
    play.desk.token().await;
    let run = play.run.describe().await.unwrap().run;
    let activity = play.client.activity_by_id("asks", "activity-1").in_run(run);
    activity.complete(&8_u32).await.unwrap();
    play.completes("it is completed by its id", 8).await;
}

/// Waits until the attempt is left to the outside.
async fn detached(site: &Site) {
    loop {
        let run = site.shown("asks").await;
        let mut phases = run.activities.iter().map(|activity| &activity.phase);
        if phases.any(|phase| matches!(phase, ShownPhase::Started { detached: true, .. })) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn its_worker_dies() {
    let (site, desk) = (Site::open().await, Desk::new());
    let first = site.work(|worker| set_up(worker, &desk));
    let run = site.client().start::<Asks>("asks", Way::Patient).await.unwrap();
    let token = desk.token().await;
    detached(&site).await;
    first.kill().await;
    site.pass(MINUTE);
    let _second = site.work(|worker| set_up(worker, &desk));
    site.client().activity(&token).complete(&7_u32).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 7);
    PAGE.check("its worker dies", &run.history().await.unwrap());
}

#[tokio::test]
async fn the_engine_crashes() {
    let (mut site, desk) = (Site::open().await, Desk::new());
    let first = site.work(|worker| set_up(worker, &desk));
    site.client().start::<Asks>("asks", Way::Patient).await.unwrap();
    let token = desk.token().await;
    detached(&site).await;
    first.kill().await;
    site.reopen().await;
    site.pass(MINUTE);
    let _second = site.work(|worker| set_up(worker, &desk));
    site.client().activity(&token).complete(&7_u32).await.unwrap();
    let run = site.client().handle::<Asks>("asks");
    assert_eq!(run.result().await.unwrap(), 7);
    PAGE.check("the engine crashes", &run.history().await.unwrap());
}

#[tokio::test]
async fn it_is_reported_before_its_activity_has_returned() {
    let play = Play::begin(Way::Lingers).await;
    let token = play.desk.token().await;
    play.desk.0.gate.entered().await;
    play.client.activity(&token).complete(&7_u32).await.unwrap();
    play.desk.0.gate.open();
    play.completes("it is reported before its activity has returned", 7).await;
}

#[tokio::test]
async fn the_attempt_fails_and_is_retried() {
    let play = Play::begin(Way::Patient).await;
    let first = play.desk.token().await;
    let failed = ActivityError::new("engaged").retry_after(MINUTE);
    play.client.activity(&first).fail(failed).await.unwrap();
    play.env.skip(MINUTE).await;
    let second = play.desk.token().await;
    let late = play.client.activity(&first).complete(&1_u32).await;
    assert_eq!(refused(late), RefusalKind::StaleAttempt);
    play.client.activity(&second).complete(&2_u32).await.unwrap();
    play.completes("the attempt fails and is retried", 2).await;
}

#[tokio::test]
async fn it_fails_for_good() {
    let play = Play::begin(Way::Patient).await;
    let token = play.desk.token().await;
    let failed = ActivityError::new("the card was declined").non_retryable();
    play.client.activity(&token).fail(failed).await.unwrap();
    play.fails("it fails for good", "the card was declined").await;
}

#[tokio::test]
async fn nobody_reports_in_time() {
    let play = Play::begin(Way::Once).await;
    let (token, client) = (play.desk.token().await, play.client.clone());
    play.fails("no report arrives in time", "activity ask failed").await;
    let late = client.activity(&token).complete(&1_u32).await;
    assert_eq!(refused(late), RefusalKind::RunClosed);
}

#[tokio::test]
async fn heartbeats_keep_it_alive() {
    let play = Play::begin(Way::Heartbeats).await;
    let activity = play.client.activity(&play.desk.token().await);
    for part in 0..5_u32 {
        play.env.skip(MINUTE / 2).await;
        assert!(!activity.heartbeat(&part).await.unwrap(), "its cancellation was not requested");
    }
    activity.complete(&7_u32).await.unwrap();
    play.completes("heartbeats keep it alive", 7).await;
}

#[tokio::test]
async fn its_heartbeats_stop() {
    let play = Play::begin(Way::Heartbeats).await;
    play.client.activity(&play.desk.token().await).heartbeat(&3_u32).await.unwrap();
    let run = play.run.clone();
    play.fails("its heartbeats stop", "activity ask failed").await;
    let history = run.history().await.unwrap();
    let details = history.iter().find_map(timeout_details);
    assert_eq!(details, Some(abide::payload::encode(&3_u32).unwrap()));
}

fn timeout_details(event: &HistoryEvent) -> Option<abide_core::payload::Payloads> {
    match event.fact() {
        Fact::ActivityTimedOut(timed_out) => Some(timed_out.failure.details.clone()),
        _ => None,
    }
}

#[tokio::test]
async fn the_workflow_wants_it_cancelled() {
    let play = Play::begin(Way::Impatient).await;
    let activity = play.client.activity(&play.desk.token().await);
    play.env.skip(MINUTE).await;
    assert!(activity.heartbeat(&()).await.unwrap(), "the workflow has given it up");
    activity.cancelled(&()).await.unwrap();
    play.completes("the workflow wants it cancelled", 0).await;
}

#[tokio::test]
async fn it_says_that_it_was_cancelled_and_nobody_asked() {
    let play = Play::begin(Way::Patient).await;
    let activity = play.client.activity(&play.desk.token().await);
    assert_eq!(refused(activity.cancelled(&()).await), RefusalKind::CancelNotRequested);
    activity.complete(&7_u32).await.unwrap();
    play.completes("it reports a cancellation that was not requested", 7).await;
}

#[tokio::test]
async fn it_is_completed_twice() {
    let play = Play::begin(Way::Patient).await;
    let (token, client) = (play.desk.token().await, play.client.clone());
    client.activity(&token).complete(&7_u32).await.unwrap();
    let second = refused(client.activity(&token).complete(&8_u32).await);
    assert!(matches!(second, RefusalKind::StaleAttempt | RefusalKind::RunClosed), "{second:?}");
    play.completes("it is completed twice", 7).await;
    let third = refused(client.activity(&token).complete(&9_u32).await);
    assert_eq!(third, RefusalKind::RunClosed);
}

#[tokio::test]
async fn the_token_is_damaged() {
    let play = Play::begin(Way::Patient).await;
    let token = play.desk.token().await;
    let cut = play.client.activity(&token[1..]).complete(&1_u32).await;
    let Err(ClientError::Invalid { field, .. }) = cut else { panic!("{cut:?}") };
    assert_eq!(field, "token");
    play.client.activity(&token).complete(&7_u32).await.unwrap();
    play.completes("the token is damaged", 7).await;
}

#[tokio::test]
async fn the_result_is_too_large() {
    let play = Play::begin(Way::Patient).await;
    let activity = play.client.activity(&play.desk.token().await);
    let large = activity.complete(&"x".repeat(3 << 20)).await;
    assert!(matches!(large, Err(ClientError::Invalid { .. })), "{large:?}");
    activity.complete(&7_u32).await.unwrap();
    play.completes("the result is too large", 7).await;
}

#[tokio::test]
async fn no_attempt_runs() {
    let (site, desk) = (Site::open().await, Desk::new());
    let workflows = site.work(|worker| worker.workflow::<Asks>());
    let run = site.client().start::<Asks>("asks", Way::Patient).await.unwrap();
    until(&run, |fact| matches!(fact, Fact::ActivityScheduled(_))).await;
    let client = site.client();
    let activity = client.activity_by_id("asks", "activity-1");
    let early = refused(activity.complete(&1_u32).await);
    assert_eq!(early, RefusalKind::NoAttempt);
    let _desks = site.work(|worker| worker.activities(desk.clone()));
    desk.token().await;
    activity.complete(&7_u32).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 7);
    assert_eq!(refused(activity.complete(&8_u32).await), RefusalKind::RunClosed);
    let nobody = client.activity_by_id("nobody", "activity-1").complete(&1_u32).await;
    assert_eq!(nobody, Err(ClientError::NotFound));
    PAGE.check("no attempt runs", &run.history().await.unwrap());
    workflows.kill().await;
}
