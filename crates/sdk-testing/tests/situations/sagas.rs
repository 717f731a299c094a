//! Sagas: steps that are undone when a later one fails.

use abide::client::HistoryEvent;
use abide::{ClientError, UndoFailure, WorkflowHandle, event::Fact, prelude::*};
use abide_sdk_testing::{Step, TestEnvironment, replay_history, steps};

use crate::table::page;

page!("sagas.md", "sagas.rs");

/// Books something. There is no free room anywhere.
#[activity]
async fn book(what: String) -> Result<String, ActivityError> {
    match what.as_str() {
        "room" => Err(ActivityError::new("no room is free").non_retryable()),
        _ => Ok(format!("{what} for Ada")),
    }
}

/// Gives a booking back. Flights cannot be given back.
#[activity]
async fn give_back(what: String) -> Result<(), ActivityError> {
    match what.as_str() {
        "flight" => Err(ActivityError::new("flights are final").non_retryable()),
        _ => Ok(()),
    }
}

/// Books one thing after the other.
#[derive(Default)]
struct Trip;

#[workflow]
impl Trip {
    #[run]
    async fn run(ctx: &Context<Self>, parts: Vec<String>, at_once: bool) -> abide::Result<usize> {
        let saga = if at_once { Saga::new().undo_at_once() } else { Saga::new() };
        saga.run(ctx, async |saga| {
            for part in &parts {
                ctx.activity(book, part.clone()).await?;
                saga.undo(format!("give back {part}"), ctx.activity(give_back, part.clone()));
            }
            ctx.sleep(hours(parts.len() as u64)).await?;
            Ok(parts.len())
        })
        .await
    }
}

fn parts(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|&part| part.into()).collect()
}

fn booked(part: &str) -> Step {
    Step::activity(book, part)
}

fn given_back(part: &str) -> Step {
    Step::activity(give_back, part)
}

async fn environment() -> TestEnvironment {
    let env = TestEnvironment::new().await;
    let set_up = env.worker(|worker| {
        let worker = worker.workflow::<Trip>().workflow::<ByHand>().workflow::<Careful>();
        let worker = worker.workflow::<Journey>().workflow::<Stages>().workflow::<Holiday>();
        worker.activity(book).activity(give_back)
    });
    set_up.await.unwrap();
    env
}

/// A trip and its history, when it has closed.
async fn travel(
    env: &TestEnvironment,
    wanted: &[&str],
    at_once: bool,
) -> (Result<usize, ClientError>, Vec<HistoryEvent>) {
    let trip = env.client().start::<Trip>("trip", (parts(wanted), at_once)).await.unwrap();
    let result = trip.result().await;
    let history = trip.history().await.unwrap();
    replay_history::<Trip>(history.clone()).unwrap();
    (result, history)
}

fn message(error: &ClientError) -> &str {
    match error {
        ClientError::RunFailed(failure) => failure.message(),
        other => panic!("{other:?}"),
    }
}

/// The first failure of a chain, which says why everything went wrong.
fn undo_failures(error: &ClientError) -> Vec<(String, String)> {
    let ClientError::RunFailed(failure) = error else { panic!("{error:?}") };
    let told = UndoFailure::in_failure(failure).into_iter();
    told.map(|step| (step.step, step.failure.causes()[0].to_string())).collect()
}

#[tokio::test]
async fn all_steps_succeed() {
    let env = environment().await;
    let (result, history) = travel(&env, &["car", "bike"], false).await;
    assert_eq!(result.unwrap(), 2);
    PAGE.check("all steps succeed", &history);
}

#[tokio::test]
async fn a_step_fails() {
    let env = environment().await;
    let (result, history) = travel(&env, &["car", "bike", "room"], false).await;
    let error = result.unwrap_err();
    assert_eq!(message(&error), "activity book failed: no room is free");
    assert!(undo_failures(&error).is_empty());
    PAGE.check("a step fails: the others are undone, the last first", &history);
    let undone = [given_back("bike"), given_back("car")];
    assert_eq!(steps(&history)[3..5], undone);
}

#[tokio::test]
async fn the_first_step_fails() {
    let env = environment().await;
    let (result, history) = travel(&env, &["room"], false).await;
    assert_eq!(message(&result.unwrap_err()), "activity book failed: no room is free");
    PAGE.check("the first step fails: there is nothing to undo", &history);
}

#[tokio::test]
async fn all_are_undone_at_once() {
    let env = environment().await;
    let (result, history) = travel(&env, &["car", "bike", "room"], true).await;
    assert_eq!(message(&result.unwrap_err()), "activity book failed: no room is free");
    PAGE.check("the steps are undone concurrently", &history);
}

#[tokio::test]
async fn what_cannot_be_undone_is_told() {
    let env = environment().await;
    for at_once in [false, true] {
        let trip = parts(&["car", "flight", "bike", "room"]);
        let start = env.client().start::<Trip>(format!("trip-{at_once}"), (trip, at_once));
        let trip = start.await.unwrap();
        let error = trip.result().await.unwrap_err();
        assert_eq!(
            message(&error),
            "activity book failed: no room is free; not undone: give back flight (activity \
             give_back failed: flights are final)"
        );
        let remains = ("give back flight".to_owned(), "flights are final".to_owned());
        assert_eq!(undo_failures(&error), [remains]);
        let ClientError::RunFailed(failure) = error else { panic!() };
        assert_eq!(failure.error_type(), "SagaNotUndone");
        assert_eq!(failure.causes()[1].message(), "no room is free");
        let history = trip.history().await.unwrap();
        if !at_once {
            PAGE.check("a step cannot be undone: the others are", &history);
        }
        for part in ["bike", "flight", "car"] {
            assert!(steps(&history).contains(&given_back(part)), "{part}");
        }
    }
}

#[tokio::test]
async fn undoing_is_retried() {
    let env = environment().await;
    env.fail_attempt(give_back, 1, "the line is busy");
    env.fail_attempt(give_back, 2, "the line is busy");
    let (result, history) = travel(&env, &["car", "room"], false).await;
    assert_eq!(message(&result.unwrap_err()), "activity book failed: no room is free");
    PAGE.check("undoing fails twice and is retried", &history);
}

/// A trip that waits after its last step.
async fn waiting(env: &TestEnvironment) -> WorkflowHandle<Trip> {
    let start = env.client().start::<Trip>("trip", (parts(&["car", "bike"]), false));
    let trip = start.await.unwrap();
    env.skip(minutes(1)).await;
    trip
}

#[tokio::test]
async fn a_cancel_request_undoes_all() {
    let env = environment().await;
    // The second request comes while the first is dealt with.
    env.delay_attempt(give_back, 1, seconds(30));
    let trip = waiting(&env).await;
    trip.cancel().await.unwrap();
    trip.cancel().await.unwrap();
    assert!(matches!(trip.result().await, Err(ClientError::RunCancelled(_))));
    let history = trip.history().await.unwrap();
    PAGE.check("a cancel request: all is undone", &history);
    assert_eq!(steps(&history)[3..], [given_back("bike"), given_back("car"), Step::CancelRun]);
}

#[tokio::test]
async fn a_cancel_request_after_which_something_remains() {
    let env = environment().await;
    let start = env.client().start::<Trip>("trip", (parts(&["flight"]), false));
    let trip = start.await.unwrap();
    env.skip(minutes(1)).await;
    trip.cancel().await.unwrap();
    let error = trip.result().await.unwrap_err();
    assert!(message(&error).starts_with("cancelled; not undone: give back flight"), "{error}");
    let history = trip.history().await.unwrap();
    PAGE.check("a cancel request, and a step cannot be undone", &history);
}

#[tokio::test]
async fn a_cancel_request_does_not_stop_the_undoing() {
    let env = environment().await;
    env.delay_attempt(give_back, 1, seconds(30));
    let start = env.client().start::<Trip>("trip", (parts(&["car", "bike", "room"]), false));
    let trip = start.await.unwrap();
    env.skip(seconds(10)).await;
    trip.cancel().await.unwrap();
    let error = trip.result().await.unwrap_err();
    assert_eq!(message(&error), "activity book failed: no room is free");
    let history = trip.history().await.unwrap();
    PAGE.check("a cancel request while steps are undone", &history);
}

#[tokio::test]
async fn a_lost_worker_undoes_nothing_twice() {
    // Whichever task is lost, the history is the same.
    for lost in 1..=6 {
        let env = environment().await;
        env.lose_task(lost);
        let (result, history) = travel(&env, &["car", "bike", "room"], false).await;
        assert_eq!(message(&result.unwrap_err()), "activity book failed: no room is free");
        let undone = [given_back("bike"), given_back("car")];
        assert_eq!(steps(&history)[3..5], undone, "task {lost}");
        PAGE.check("the worker is lost at any step", &history);
    }
}

#[tokio::test]
async fn a_crash_in_the_middle_of_undoing() {
    let env = environment().await;
    env.delay_attempt(give_back, 1, minutes(5));
    let start = env.client().start::<Trip>("trip", (parts(&["car", "bike", "room"]), false));
    let trip = start.await.unwrap();
    for _ in 0..3 {
        env.skip(minutes(4)).await;
        env.crash().await.unwrap();
    }
    let error = trip.result().await.unwrap_err();
    assert_eq!(message(&error), "activity book failed: no room is free");
    let history = trip.history().await.unwrap();
    PAGE.check("engine and worker crash while steps are undone", &history);
    let undone = [given_back("bike"), given_back("car")];
    assert_eq!(steps(&history)[3..5], undone);
}

/// Undoes because of an answer, not of an error.
#[derive(Default)]
struct ByHand;

#[workflow]
impl ByHand {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let mut saga = Saga::new();
        ctx.activity(book, "flight").await?;
        saga.undo("give back the flight", ctx.activity(give_back, "flight"));
        if ctx.receive(Self::AGREED).await? {
            return Ok("booked".into());
        }
        let remaining = saga.undo_all(ctx).await;
        assert!(saga.undo_all(ctx).await.is_empty(), "a step is undone once");
        Ok(format!("{} could not be undone", remaining.len()))
    }

    #[signal]
    fn agreed(yes: bool);
}

#[tokio::test]
async fn code_undoes_by_hand() {
    let env = environment().await;
    let trip = env.client().start::<ByHand>("trip", ()).await.unwrap();
    trip.signal(ByHand::AGREED, false).await.unwrap();
    assert_eq!(trip.result().await.unwrap(), "1 could not be undone");
    PAGE.check("code undoes by hand, and goes on", &trip.history().await.unwrap());
}

/// Says how to undo a step before it is taken.
#[derive(Default)]
struct Careful;

#[workflow]
impl Careful {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        Saga::new()
            .run(ctx, async |saga| {
                saga.undo("give back the car", ctx.activity(give_back, "car"));
                let once = RetryPolicy::once();
                ctx.activity(book, "car").retry(once).await.map(drop)
            })
            .await
    }
}

#[tokio::test]
async fn a_step_that_timed_out_may_have_taken_effect() {
    let env = environment().await;
    env.delay_attempt(book, 1, hours(1));
    let trip = env.client().start::<Careful>("trip", ()).await.unwrap();
    let error = trip.result().await.unwrap_err();
    assert_eq!(message(&error), "activity book failed: start-to-close timeout");
    PAGE.check(
        "a step times out that was to be undone in any case",
        &trip.history().await.unwrap(),
    );
}

/// Tries an expensive trip, then a cheap one.
#[derive(Default)]
struct Journey;

#[workflow]
impl Journey {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        Saga::new()
            .run(ctx, async |saga| {
                ctx.activity(book, "ferry").await?;
                saga.undo("give back the ferry", ctx.activity(give_back, "ferry"));
                let expensive = Saga::new().run(ctx, async |inner| {
                    ctx.activity(book, "car").await?;
                    inner.undo("give back the car", ctx.activity(give_back, "car"));
                    ctx.activity(book, "room").await
                });
                match expensive.await {
                    Ok(room) => Ok(room),
                    Err(_) => ctx.activity(book, "tent").await,
                }
            })
            .await
    }
}

#[tokio::test]
async fn a_saga_within_a_saga() {
    let env = environment().await;
    let trip = env.client().start::<Journey>("trip", ()).await.unwrap();
    assert_eq!(trip.result().await.unwrap(), "tent for Ada");
    let history = trip.history().await.unwrap();
    PAGE.check("a saga within a saga fails, and the outer one goes on", &history);
    assert_eq!(steps(&history)[3..5], [given_back("car"), booked("tent")]);
}

/// Goes on in a new run in the middle of a saga.
#[derive(Default)]
struct Stages;

#[workflow]
impl Stages {
    #[run]
    async fn run(ctx: &Context<Self>, stage: u32) -> abide::Result<u32> {
        Saga::new()
            .run(ctx, async |saga| {
                ctx.activity(book, "car").await?;
                saga.undo("give back the car", ctx.activity(give_back, "car"));
                if stage == 1 { Err(ctx.continue_as_new(2)) } else { Ok(stage) }
            })
            .await
    }
}

#[tokio::test]
async fn a_saga_that_continues_as_new_is_not_undone() {
    let env = environment().await;
    let trip = env.client().start::<Stages>("trip", 1).await.unwrap();
    assert_eq!(trip.result().await.unwrap(), 2);
    let first = trip.clone().run(trip.run_id().unwrap());
    let history = first.history().await.unwrap();
    assert!(matches!(history.last().unwrap().fact(), Fact::RunContinuedAsNew(_)));
    PAGE.check("the steps continue as new: nothing is undone", &history);
}

/// Its steps are children.
#[derive(Default)]
struct Holiday;

#[workflow]
impl Holiday {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        Saga::new()
            .run(ctx, async |saga| {
                ctx.activity(book, "car").await?;
                saga.undo("give back the car", ctx.activity(give_back, "car"));
                ctx.child::<Trip>("way-there", (parts(&["flight", "room"]), false)).await.map(drop)
            })
            .await
    }
}

#[tokio::test]
async fn a_child_that_could_not_undo_all_is_a_cause() {
    let env = environment().await;
    let trip = env.client().start::<Holiday>("trip", ()).await.unwrap();
    let error = trip.result().await.unwrap_err();
    let remains = ("give back flight".to_owned(), "flights are final".to_owned());
    assert_eq!(undo_failures(&error), [remains], "the child tells its parent's client");
    let history = trip.history().await.unwrap();
    PAGE.check("a step is a child that could not undo its own steps", &history);
}
