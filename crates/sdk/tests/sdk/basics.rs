//! Activities, sleeps and what a run returns.

use std::time::Duration;

use abide::{Context, Error, RetryPolicy};
use abide_core::{
    event::{Delivery, Fact},
    failure::{Failure, FailureKind},
};
use abide_sdk_macros::{activity, workflow};

use crate::world::{World, seconds};

/// Says hello.
#[activity]
async fn greet(name: String) -> Result<String, std::io::Error> {
    Ok(format!("Hello, {name}!"))
}

#[activity(name = "add-up")]
async fn add(left: u32, right: u32) -> u32 {
    left + right
}

#[derive(Default)]
struct Hello;

#[workflow]
impl Hello {
    #[run]
    async fn run(ctx: &Context<Self>, name: String) -> abide::Result<String> {
        ctx.sleep(seconds(5)).await?;
        ctx.activity(greet, name).start_to_close(seconds(10)).await
    }
}

#[test]
fn a_run_sleeps_and_calls_an_activity() {
    let mut world = World::<Hello>::start("Ada");
    assert_eq!(world.history(), ["RunStarted", "TimerStarted"]);
    world.pass(seconds(4));
    assert_eq!(world.history().len(), 2);
    world.pass(seconds(1));
    world.complete(greet, "Hello, Ada!".into());
    assert_eq!(world.result().unwrap(), "Hello, Ada!");
    assert_eq!(
        world.history()[2..],
        ["TimerFired", "ActivityScheduled", "ActivityCompleted", "RunCompleted"]
    );
    world.check();
}

#[test]
fn a_failed_activity_is_an_error_with_its_cause() {
    let mut world = World::<Hello>::start("Ada");
    world.pass(seconds(5));
    let failure = Failure { message: "no mail".into(), non_retryable: true, ..Failure::default() };
    world.fail(greet, failure);
    let failure = world.failure().unwrap();
    assert_eq!(failure.message, "activity greet failed: no mail");
    assert_eq!(failure.kind, FailureKind::Activity);
    assert_eq!(failure.causes[0].message, "no mail");
    world.check();
}

#[test]
fn a_run_that_was_evicted_goes_on_from_its_history() {
    let mut world = World::<Hello>::start("Ada");
    world.evict();
    world.pass(seconds(5));
    world.evict();
    world.complete(greet, "Hello again!".into());
    assert_eq!(world.result().unwrap(), "Hello again!");
    world.check();
}

/// A workflow under another name, with two arguments and its own first state.
struct Sum {
    total: u32,
}

#[workflow(name = "sum-up")]
impl Sum {
    #[init]
    fn new(first: &u32, _second: &u32) -> Self {
        Self { total: *first }
    }

    #[run]
    async fn run(ctx: &Context<Self>, _first: u32, second: u32) -> abide::Result<u32> {
        let total = ctx.read(|state| state.total);
        let call = ctx.activity(add, (total, second)).queue("adders").at_most_once();
        let total = call.schedule_to_close(seconds(9)).retry(once()).await?;
        ctx.write(|state| state.total = total);
        Ok(ctx.read(|state| state.total))
    }
}

fn once() -> RetryPolicy {
    RetryPolicy::once()
}

#[test]
fn names_arguments_and_options_are_those_of_the_code() {
    let mut world = World::<Sum>::start((1, 2));
    assert_eq!(world.run.spec.workflow_type, "sum-up");
    let spec = world.events.iter().find_map(|event| match &event.body.fact {
        Fact::ActivityScheduled(scheduled) => Some(scheduled.spec.clone()),
        _ => None,
    });
    let spec = spec.unwrap();
    assert_eq!((spec.activity_type.as_str(), spec.queue.as_str()), ("add-up", "adders"));
    assert_eq!(spec.input.iter().map(|it| &*it.data).collect::<Vec<_>>(), [b"1", b"2"]);
    assert_eq!((spec.schedule_to_close, spec.start_to_close), (Some(seconds(9)), None));
    assert_eq!((spec.delivery, spec.retry), (Delivery::AtMostOnce, Some(once().into())));
    world.complete(add, 3);
    assert_eq!(world.result(), Some(3));
    world.check();
}

/// Calls its variables as it calls its activities.
#[derive(Default)]
struct Plain;

#[workflow]
impl Plain {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let greet = ctx.activity(greet, "Ada").await?;
        let add = ctx.activity(add, (1, 2)).await?;
        Ok(format!("{greet} {add}"))
    }
}

#[test]
fn a_variable_may_have_the_name_of_an_activity() {
    let mut world = World::<Plain>::start(());
    world.complete(greet, "Hello".into());
    world.complete(add, 3);
    assert_eq!(world.result().unwrap(), "Hello 3");
    world.check();
}

#[derive(Default)]
struct Patient;

#[workflow]
impl Patient {
    #[run]
    async fn run(ctx: &Context<Self>) -> anyhow::Result<u32> {
        let policy = RetryPolicy::default().recorded().maximum_attempts(2);
        Ok(ctx.activity(add, (1, 1)).retry(policy).await?)
    }
}

#[test]
fn recorded_retries_are_timers_of_the_run() {
    let mut world = World::<Patient>::start(());
    world.fail(add, Failure::default());
    assert_eq!(world.history()[2..], ["ActivityFailed", "TimerStarted"]);
    world.pass(seconds(1));
    world.complete(add, 2);
    assert_eq!(world.result(), Some(2));
    world.check();

    let mut world = World::<Patient>::start(());
    world.fail(add, Failure::default());
    world.pass(seconds(1));
    world.fail(add, Failure { message: "again".into(), ..Failure::default() });
    assert!(world.failure().unwrap().message.contains("again"));
    world.check();
}

/// Makes its retries itself, within ten seconds.
#[derive(Default)]
struct Hurried;

#[workflow]
impl Hurried {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        let policy = RetryPolicy::default().recorded();
        ctx.activity(add, (1, 1)).schedule_to_close(seconds(10)).retry(policy).await
    }
}

#[test]
fn recorded_retries_end_when_the_time_of_the_activity_is_up() {
    let mut world = World::<Hurried>::start(());
    for delay in [1, 2, 4] {
        world.fail(add, Failure::default());
        world.pass(seconds(delay));
    }
    let limits = world.events.iter().filter_map(|event| match &event.body.fact {
        Fact::ActivityScheduled(scheduled) => scheduled.spec.schedule_to_close,
        _ => None,
    });
    assert_eq!(limits.collect::<Vec<_>>(), [10, 9, 7, 3].map(seconds));
    // The next delay would be eight seconds.
    world.fail(add, Failure { message: "too late".into(), ..Failure::default() });
    assert!(world.failure().unwrap().message.contains("too late"));
    world.check();
}

/// What the run does is what its argument says.
#[derive(Default)]
struct Ending;

#[workflow]
impl Ending {
    #[run]
    async fn run(ctx: &Context<Self>, ending: String) -> Result<(), abide::BoxError> {
        match ending.as_str() {
            "plain" => Err("plain text".into()),
            "ours" => Err(Error::new("our own").into()),
            "number" => Ok("x".parse::<u8>().map(drop)?),
            "cancelled" => Err(Error::Cancelled.into()),
            _ => Ok(ctx.sleep(Duration::ZERO).await?),
        }
    }
}

#[test]
fn what_a_run_returns_is_how_it_ends() {
    let failure = |ending: &str| {
        let world = World::<Ending>::start(ending);
        world.check();
        world.failure().cloned().unwrap()
    };
    assert_eq!(failure("plain").message, "plain text");
    assert_eq!(failure("ours").message, "our own");
    assert_eq!(failure("number").message, "invalid digit found in string");
    assert_eq!(failure("cancelled").kind, FailureKind::Cancelled);
    let world = World::<Ending>::start("");
    assert_eq!(world.history(), ["RunStarted", "RunCompleted"]);
    assert!(matches!(&world.events.last().unwrap().body.fact,
        Fact::RunCompleted(completed) if completed.result.is_empty()));
}
