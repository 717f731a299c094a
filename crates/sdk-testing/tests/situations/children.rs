//! Parents and children: results, failures and retries. The other files play how ids are used, what is
//! said between workflows, and how families end.

mod bounds;
mod crashes;
mod ends;
mod ids;
mod messages;

use abide::{
    ChildFailure, Client, ClientError, Failure, FailureKind, RetryPolicy, TimeoutKind,
    WorkflowHandle, payload, prelude::*,
};
use abide_core::retry::RetryState;
use abide_sdk_testing::TestEnvironment;

use crate::table::page;

page!(
    "children.md",
    "children.rs",
    "children/bounds.rs",
    "children/ends.rs",
    "children/ids.rs",
    "children/messages.rs"
);

/// A child that follows its input.
#[derive(Default)]
struct Kid;

#[workflow]
impl Kid {
    #[run]
    async fn run(ctx: &Context<Self>, plan: String) -> abide::Result<u32> {
        match plan.as_str() {
            "fail" => Err(Error::new("no luck")),
            "stay" => ctx.receive(Self::GO).await,
            "sleep" => ctx.sleep(hours(1)).await.map(|()| 0),
            "go on" => Err(ctx.continue_as_new("8".to_owned())),
            "third time" if ctx.attempt() < 3 => Err(Error::new("not yet")),
            "third time" => Ok(3),
            "buy" => ctx.child::<Self>("till", "pay").await,
            "pay" => ctx.activity(charge, 100).retry(RetryPolicy::once()).await,
            "start my parent" => ctx.child::<Parent>("parent", String::new()).await,
            number => number.parse().map_err(Error::from_source),
        }
    }

    #[signal]
    fn go(number: u32);
}

#[activity]
async fn charge(cents: u32) -> Result<u32, ActivityError> {
    let declined = ActivityError::new("the card has expired").error_type("Declined");
    Err(declined.details(&cents))
}

/// A parent that has one child, or several attempts at one.
#[derive(Default)]
struct Parent;

#[workflow]
impl Parent {
    #[run]
    async fn run(ctx: &Context<Self>, plan: String) -> abide::Result<u32> {
        let twice = RetryPolicy::default().maximum_attempts(2);
        let three = RetryPolicy::default().maximum_attempts(3);
        match plan.as_str() {
            "limit the run" => ctx.child::<Kid>("kid", "sleep").run_timeout(minutes(1)).await,
            "limit all runs" => {
                let kid = ctx.child::<Kid>("kid", "sleep").retry(three);
                kid.run_timeout(minutes(1)).execution_timeout(seconds(90)).await
            }
            "let the engine retry" => ctx.child::<Kid>("kid", "third time").retry(three).await,
            "retry" => ctx.child::<Kid>("kid", "fail").retry(twice.recorded()).await,
            "every hour" => {
                let kid = ctx.child::<Kid>("kid", "7").cron("0 * * * *").memo("of", &1);
                let kid = kid.task_timeout(seconds(5)).start().await?;
                ctx.sleep(minutes(150)).await?;
                kid.cancel().await?;
                kid.result().await
            }
            plan => ctx.child::<Kid>("kid", plan.to_owned()).await,
        }
    }
}

async fn environment() -> TestEnvironment {
    let env = TestEnvironment::new().await;
    let set_up = |worker: Worker| worker.workflow::<Parent>().workflow::<Kid>().activity(charge);
    env.worker(set_up).await.unwrap();
    env
}

async fn start(client: &Client, plan: &str) -> WorkflowHandle<Parent> {
    client.start::<Parent>("parent", plan.to_owned()).await.unwrap()
}

/// The failure of a run, with its causes.
async fn failure(parent: &WorkflowHandle<Parent>) -> Vec<Failure> {
    let Err(ClientError::RunFailed(failure)) = parent.result().await else { panic!("no failure") };
    failure.chain().cloned().collect()
}

/// What it says on each level, from the outside in.
fn messages(failures: &[Failure]) -> Vec<&str> {
    failures.iter().map(|failure| failure.message()).collect()
}

#[tokio::test]
async fn the_child_completes() {
    let env = environment().await;
    let parent = start(&env.client(), "7").await;
    assert_eq!(parent.result().await.unwrap(), 7);
    PAGE.check("the child completes", &parent.history().await.unwrap());
}

#[tokio::test]
async fn the_child_fails() {
    let env = environment().await;
    let parent = start(&env.client(), "fail").await;
    let failures = failure(&parent).await;
    assert_eq!(messages(&failures), ["child kid of type Kid failed: no luck", "no luck"]);
    assert_eq!(failures[0].kind(), FailureKind::Child);
    PAGE.check("the child fails", &parent.history().await.unwrap());
}

#[tokio::test]
async fn an_activity_of_a_grandchild_fails() {
    let env = environment().await;
    let parent = start(&env.client(), "buy").await;
    let failures = failure(&parent).await;
    let kinds: Vec<_> = failures.iter().map(Failure::kind).collect();
    use FailureKind::{Activity, Application, Child};
    assert_eq!(kinds, [Child, Child, Activity, Application]);
    let innermost = failures.last().unwrap();
    assert_eq!(innermost.message(), "the card has expired");
    assert_eq!(innermost.error_type(), "Declined");
    assert_eq!(payload::decode::<u32>(innermost.details()).unwrap(), 100);
    let outermost = "child kid of type Kid failed: child till of type Kid failed: \
                     activity charge failed: the card has expired";
    assert_eq!(failures[0].message(), outermost);
    PAGE.check("an activity of a grandchild fails", &parent.history().await.unwrap());
}

#[tokio::test]
async fn somebody_ends_the_child() {
    for (way, message) in [
        ("a client cancels the child", "it was cancelled"),
        ("a client terminates the child", "it was terminated: enough"),
    ] {
        let env = environment().await;
        let parent = start(&env.client(), "stay").await;
        env.skip(seconds(1)).await;
        let kid = env.client().handle::<Kid>("kid");
        match way {
            "a client cancels the child" => kid.cancel().await.unwrap(),
            _ => kid.terminate("enough").await.unwrap(),
        }
        let outer = format!("child kid of type Kid failed: {message}");
        assert_eq!(messages(&failure(&parent).await), [outer.as_str(), message]);
        PAGE.check(way, &parent.history().await.unwrap());
    }
}

#[tokio::test]
async fn the_time_of_the_child_is_up() {
    for (plan, situation, passed) in [
        ("limit the run", "the run timeout of the child passes", 60),
        ("limit all runs", "the execution timeout of the child passes", 90),
    ] {
        let env = environment().await;
        let begun = env.now();
        let parent = start(&env.client(), plan).await;
        let failures = failure(&parent).await;
        assert_eq!(env.now().saturating_since(begun), seconds(passed));
        assert_eq!(failures[1].kind(), FailureKind::Timeout(TimeoutKind::StartToClose));
        assert_eq!(failures[1].message(), "it timed out");
        PAGE.check(situation, &parent.history().await.unwrap());
    }
}

#[tokio::test]
async fn the_child_goes_on_as_a_new_run() {
    let env = environment().await;
    let parent = start(&env.client(), "go on").await;
    assert_eq!(parent.result().await.unwrap(), 8);
    PAGE.check("the child continues as new", &parent.history().await.unwrap());
}

#[tokio::test]
async fn the_engine_retries_the_child() {
    let env = environment().await;
    let begun = env.now();
    let parent = start(&env.client(), "let the engine retry").await;
    assert_eq!(parent.result().await.unwrap(), 3);
    assert_eq!(env.now().saturating_since(begun), seconds(1 + 2));
    assert_eq!(env.client().handle::<Kid>("kid").describe().await.unwrap().attempt, 3);
    PAGE.check("the engine retries the child", &parent.history().await.unwrap());
}

/// Tells its caller what it knows of a child that failed.
#[derive(Default)]
struct Witness;

#[workflow]
impl Witness {
    #[run]
    async fn run(ctx: &Context<Self>, attempts: u32) -> abide::Result<String> {
        let policy = RetryPolicy::default().maximum_attempts(attempts);
        let failed = ctx.child::<Kid>("kid", "fail").retry(policy).await;
        let Err(Error::Child(failed)) = failed else { return Err(Error::new("no failure")) };
        let ChildFailure { workflow, retry_state, not_started, .. } = *failed;
        assert!(not_started.is_none());
        Ok(format!("{workflow}: {retry_state:?}"))
    }
}

#[tokio::test]
async fn the_parent_knows_why_a_child_was_not_tried_again() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Witness>().workflow::<Kid>()).await.unwrap();
    let parent = env.client().start::<Witness>("parent", 2).await.unwrap();
    let told = format!("kid: {:?}", RetryState::MaximumAttemptsReached);
    assert_eq!(parent.result().await.unwrap(), told);
    let history = parent.history().await.unwrap();
    PAGE.check("the child fails with its last attempt", &history);
}

#[tokio::test]
async fn the_parent_retries_the_child() {
    let env = environment().await;
    let parent = start(&env.client(), "retry").await;
    let last = "child kid-attempt-2 of type Kid failed: no luck";
    assert_eq!(messages(&failure(&parent).await), [last, "no luck"]);
    let history = parent.history().await.unwrap();
    PAGE.check("the parent retries the child, and records it", &history);
    let first: Vec<_> =
        crate::site::timers(&history).into_iter().map(|timer| timer.origin).collect();
    let origin = abide::event::Origin::ChildWorkflowRetry { workflow: "kid".into() };
    assert_eq!(first, [Some(origin)]);
    let state = |event: &abide::client::HistoryEvent| match event.fact() {
        abide_core::event::Fact::ChildFailed(failed) => Some(failed.retry_state),
        _ => None,
    };
    let states: Vec<_> = history.iter().filter_map(state).collect();
    assert_eq!(states, [RetryState::InProgress, RetryState::MaximumAttemptsReached]);
    for (id, attempt) in [("kid", 1), ("kid-attempt-2", 2)] {
        let shown = env.client().handle::<Kid>(id).describe().await.unwrap();
        assert_eq!(shown.attempt, attempt);
    }
}

#[tokio::test]
async fn a_child_with_a_schedule_ends_when_it_is_cancelled() {
    let env = environment().await;
    let parent = start(&env.client(), "every hour").await;
    let failures = failure(&parent).await;
    assert_eq!(failures[1].kind(), FailureKind::Cancelled);
    let kid = env.client().handle::<Kid>("kid").describe().await.unwrap();
    assert_eq!(kid.memo_names().count(), 1);
    let runs = abide::list::RunFilter::new().workflow("kid");
    assert_eq!(env.client().count_runs(runs).await.unwrap(), 3, "at one, at two, and the next");
    PAGE.check("a child with a cron schedule is cancelled", &parent.history().await.unwrap());
}
