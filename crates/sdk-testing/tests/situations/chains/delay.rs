//! Runs whose code begins later than they are started.

use abide::{ClientError, client::Liveness, prelude::*};
use abide_core::run::Refusal;
use abide_sdk_testing::TestEnvironment;

use super::PAGE;
use crate::site::Site;

/// Tells what it has heard when it begins.
#[derive(Default)]
struct Reminder {
    heard: Vec<String>,
}

#[workflow]
impl Reminder {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<String>> {
        // Signals of the first task are handled after the run has begun.
        ctx.sleep(seconds(1)).await?;
        Ok(ctx.read(|reminder| reminder.heard.clone()))
    }

    #[query]
    fn words(&self) -> Vec<String> {
        self.heard.clone()
    }

    #[signal]
    fn hear(&mut self, word: String) {
        self.heard.push(word);
    }

    #[update]
    fn ask(&mut self) -> abide::Result<Vec<String>> {
        Ok(self.heard.clone())
    }
}

/// A run that begins in an hour, and its environment.
async fn delayed() -> (TestEnvironment, ReminderHandle) {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Reminder>()).await.unwrap();
    let run = env.client().start::<Reminder>("reminder", ()).delay(hours(1)).await.unwrap();
    (env, run)
}

#[tokio::test]
async fn the_delay_passes() {
    let (env, run) = delayed().await;
    let begun = env.now();
    let shown = run.describe().await.unwrap();
    assert_eq!(shown.liveness, Liveness::StartDelayed);
    assert_eq!(shown.begins_at, Some(begun.saturating_add(hours(1))));
    run.result().await.unwrap();
    assert_eq!(env.now().saturating_since(begun), hours(1) + seconds(1));
    assert_eq!(run.describe().await.unwrap().begins_at, None);
    PAGE.check("the delay of a start passes", &run.history().await.unwrap());
}

#[tokio::test]
async fn a_query_before_the_beginning_is_refused_and_does_not_move_the_clock() {
    let (env, run) = delayed().await;
    let begun = env.now();
    let refused = run.words().await.unwrap_err();
    let begins_at = begun.saturating_add(hours(1));
    assert_eq!(refused, ClientError::Refused(Refusal::NotBegun { begins_at }.into()));
    assert_eq!(env.now(), begun);
}

#[tokio::test]
async fn a_signal_waits_for_the_end_of_the_delay() {
    let (env, run) = delayed().await;
    let begun = env.now();
    env.skip(minutes(10)).await;
    run.signal(Reminder::HEAR, "early").await.unwrap();
    assert_eq!(run.result().await.unwrap(), ["early"]);
    assert!(env.now().saturating_since(begun) > hours(1));
    PAGE.check("a signal comes during the delay", &run.history().await.unwrap());
}

#[tokio::test]
async fn an_update_waits_for_the_end_of_the_delay() {
    let (env, run) = delayed().await;
    let begun = env.now();
    assert!(run.update(Reminder::ASK, ()).await.unwrap().is_empty());
    assert!(env.now().saturating_since(begun) >= hours(1));
    run.result().await.unwrap();
    PAGE.check("an update comes during the delay", &run.history().await.unwrap());
}

#[tokio::test]
async fn a_run_is_cancelled_before_it_begins() {
    let (env, run) = delayed().await;
    let begun = env.now();
    run.cancel().await.unwrap();
    assert_eq!(run.result().await, Err(ClientError::RunCancelled(Vec::new())));
    assert_eq!(env.now(), begun, "at once");
    PAGE.check("a run is cancelled during its delay", &run.history().await.unwrap());
    let history = run.history().await.unwrap();
    abide_sdk_testing::replay_history::<Reminder>(history).unwrap();
}

#[tokio::test]
async fn a_run_is_terminated_before_it_begins() {
    let (_env, run) = delayed().await;
    run.terminate("enough").await.unwrap();
    assert_eq!(run.result().await, Err(ClientError::RunTerminated("enough".into())));
    PAGE.check("a run is terminated during its delay", &run.history().await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_delay_holds_over_a_crash() {
    let mut site = Site::open().await;
    let start = site.client().start::<Reminder>("reminder", ()).delay(hours(1));
    let run = start.await.unwrap().run_id().unwrap();
    site.crash();
    site.pass(minutes(59));
    site.reopen().await;
    let worker = site.work(|worker| worker.workflow::<Reminder>());
    let handle = site.client().handle::<Reminder>("reminder").run(run);
    assert_eq!(handle.describe().await.unwrap().liveness, Liveness::StartDelayed);
    drop(handle);
    worker.kill().await;
    site.crash();
    site.pass(minutes(1));
    site.reopen().await;
    let _worker = site.work(|worker| worker.workflow::<Reminder>());
    let handle = site.client().handle::<Reminder>("reminder").run(run);
    crate::site::until(&handle, |fact| fact.name() == "TimerStarted").await;
    site.pass(seconds(1));
    handle.result().await.unwrap();
    PAGE.check("the engine is down during the delay", &handle.history().await.unwrap());
}
