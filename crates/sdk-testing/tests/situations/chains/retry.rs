//! Runs that are tried again.

use abide::{
    ClientError, Failure, RetryPolicy, WorkflowHandle, client::Start, list::RunStatus, prelude::*,
};
use abide_core::{event::Fact, retry::RetryState};
use abide_sdk_testing::TestEnvironment;

use super::{PAGE, chain};

/// Succeeds in the end, or never.
#[derive(Default)]
struct Stubborn;

/// An error that no further attempt would mend.
#[derive(Debug, thiserror::Error)]
#[error("there is no such order")]
struct NoSuchOrder;

#[workflow]
impl Stubborn {
    #[run]
    async fn run(ctx: &Context<Self>, plan: String) -> abide::Result<String> {
        let first = ctx.attempt() == 1;
        let last =
            ctx.last_failure().map(|failure| failure.message().to_owned()).unwrap_or_default();
        match plan.as_str() {
            "second time" if !first => Ok(last),
            "slow" if first => ctx.sleep(hours(1)).await.map(|()| "late".into()),
            "slow" => Ok(last),
            "clean up in vain" => {
                drop(ctx.sleep(hours(1)).await);
                Err(Error::new("could not clean up"))
            }
            "void" => Err(Error::from_source(NoSuchOrder)),
            _ => Err(Error::new("not yet")),
        }
    }
}

async fn environment() -> TestEnvironment {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Stubborn>()).await.unwrap();
    env
}

fn start(env: &TestEnvironment, plan: &str) -> Start<Stubborn> {
    let policy = RetryPolicy::default().maximum_attempts(3).no_retry_on_type("NoSuchOrder");
    env.client().start::<Stubborn>("stubborn", plan.to_owned()).retry(policy)
}

/// What the last run of a workflow failed with, and why it was not tried again.
async fn end(run: &WorkflowHandle<Stubborn>) -> (String, RetryState) {
    let Err(ClientError::RunFailed(failure)) = run.result().await else { panic!("no failure") };
    let chain = chain(run).await;
    let last = chain.last().unwrap().last().unwrap().fact();
    let Fact::RunFailed(failed) = last else { panic!("{last:?}") };
    assert_eq!(Failure::from(failed.failure.clone()), *failure, "the caller sees the last failure");
    (failure.message().to_owned(), failed.retry_state)
}

#[tokio::test]
async fn a_run_that_fails_is_tried_again() {
    let env = environment().await;
    let begun = env.now();
    let run = start(&env, "second time").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "not yet", "what the first attempt failed with");
    assert_eq!(env.now().saturating_since(begun), seconds(1));
    let runs = chain(&run).await;
    PAGE.check("a run fails and is tried again", &runs[0]);
    PAGE.check("the attempt that follows it", &runs[1]);
    let first = run.clone().run(run.run_id().unwrap()).describe().await.unwrap();
    let second = run.describe().await.unwrap();
    assert_eq!((first.status, first.next_run), (RunStatus::Failed, Some(second.run)));
    assert_eq!(second.attempt, 2);
}

#[tokio::test]
async fn attempts_are_used_up() {
    let env = environment().await;
    let run = start(&env, "never").await.unwrap();
    let told = ("not yet".to_owned(), RetryState::MaximumAttemptsReached);
    assert_eq!(end(&run).await, told);
    let runs = chain(&run).await;
    assert_eq!(runs.len(), 3);
    PAGE.check("the last attempt fails", &runs[2]);
}

#[tokio::test]
async fn an_error_is_final() {
    let env = environment().await;
    let run = start(&env, "void").await.unwrap();
    let told = ("there is no such order".to_owned(), RetryState::NonRetryableFailure);
    assert_eq!(end(&run).await, told);
    PAGE.check("a run fails with an error that the policy excludes", &run.history().await.unwrap());
}

#[tokio::test]
async fn a_run_that_times_out_is_tried_again() {
    let env = environment().await;
    let run = start(&env, "slow").run_timeout(minutes(1)).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "start-to-close timeout");
    PAGE.check("a run times out and is tried again", &run.history().await.unwrap());
}

#[tokio::test]
async fn no_attempt_begins_after_the_execution_timeout() {
    let env = environment().await;
    let run = start(&env, "never").execution_timeout(seconds(1)).await.unwrap();
    assert_eq!(end(&run).await.1, RetryState::Timeout);
    PAGE.check("no time is left for another attempt", &run.history().await.unwrap());
}

#[tokio::test]
async fn a_run_that_was_asked_to_cancel_itself_is_not_tried_again() {
    let env = environment().await;
    let run = start(&env, "clean up in vain").await.unwrap();
    env.skip(seconds(1)).await;
    run.cancel().await.unwrap();
    let told = ("could not clean up".to_owned(), RetryState::CancelRequested);
    assert_eq!(end(&run).await, told);
    PAGE.check("a run fails after it was asked to cancel itself", &run.history().await.unwrap());
}

#[tokio::test]
async fn a_workflow_ends_between_two_attempts() {
    for situation in ["a workflow is cancelled between two attempts", "… or terminated"] {
        let env = environment().await;
        let policy = RetryPolicy::default().initial_interval(hours(1)).maximum_interval(hours(1));
        let run = start(&env, "never").retry(policy).await.unwrap();
        env.skip(minutes(1)).await;
        let second = run.describe().await.unwrap();
        assert_eq!(second.begins_at, Some(second.started_at.saturating_add(hours(1))));
        let cancelled = situation.contains("cancelled");
        match cancelled {
            true => run.cancel().await.unwrap(),
            false => run.terminate("enough").await.unwrap(),
        }
        let result = run.result().await;
        match cancelled {
            true => assert_eq!(result, Err(ClientError::RunCancelled(Vec::new()))),
            false => assert_eq!(result, Err(ClientError::RunTerminated("enough".into()))),
        }
        PAGE.check(situation, &chain(&run).await[1]);
    }
}
