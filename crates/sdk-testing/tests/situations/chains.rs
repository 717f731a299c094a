//! Runs that follow runs: continue-as-new. The other files play retries, schedules and delays.

mod delay;
mod retry;
mod schedule;

use abide::{
    Client, ClientError, WorkflowHandle, client::Handled, client::HistoryEvent, ids::RunId,
    list::RunStatus, prelude::*,
};
use abide_core::event::Fact;
use abide_embedded::{Embedded, Limits};
use abide_sdk_testing::TestEnvironment;

use crate::table::page;

page!("chains.md", "chains.rs", "chains/delay.rs", "chains/retry.rs", "chains/schedule.rs");

/// Adds numbers, and continues as new after each.
#[derive(Default)]
struct Sum;

#[workflow]
impl Sum {
    #[run]
    async fn run(ctx: &Context<Self>, sum: u32, missing: u32) -> abide::Result<u32> {
        if missing == 0 {
            return Ok(sum);
        }
        let number = ctx.receive(Self::ADD).await?;
        Err(ctx.continue_as_new((sum + number, missing - 1)))
    }

    #[signal]
    fn add(number: u32);

    /// Answers after a day, with the run that answers.
    #[update]
    async fn ask(ctx: &Context<Self>) -> abide::Result<String> {
        ctx.sleep(days(1)).await?;
        Ok(ctx.run_id().to_string())
    }
}

/// The run that follows a run, by its last event.
fn next_run(history: &[HistoryEvent]) -> Option<RunId> {
    match history.last().unwrap().fact() {
        Fact::RunContinuedAsNew(closed) => Some(closed.next_run),
        Fact::RunCompleted(closed) => closed.next_run,
        Fact::RunFailed(closed) => closed.next_run,
        Fact::RunTimedOut(closed) => closed.next_run,
        _ => None,
    }
}

/// The histories of all runs, from the first on.
async fn chain<W: Handled>(first: &WorkflowHandle<W>) -> Vec<Vec<HistoryEvent>> {
    let mut chain = vec![first.history().await.unwrap()];
    while let Some(next) = next_run(chain.last().unwrap()) {
        chain.push(first.run(next).as_ref().history().await.unwrap());
    }
    chain
}

#[tokio::test]
async fn a_run_goes_on_in_a_new_one() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Sum>()).await.unwrap();
    let sum = env.client().start::<Sum>("sum", (1, 1)).await.unwrap();
    sum.signal(Sum::ADD, 2).await.unwrap();
    assert_eq!(sum.result().await.unwrap(), 3);
    let runs = chain(&sum).await;
    PAGE.check("a run continues as new", &runs[0]);
    PAGE.check("the run that follows it", &runs[1]);
    let first = sum.clone().run(sum.run_id().unwrap()).describe().await.unwrap();
    assert_eq!(first.status, RunStatus::ContinuedAsNew);
    assert_eq!(sum.describe().await.unwrap().first_run, first.run);
}

#[tokio::test]
async fn signals_that_were_not_read_go_along() {
    let env = TestEnvironment::new().await;
    let sum = env.client().start::<Sum>("sum", (0, 2)).await.unwrap();
    sum.signal(Sum::ADD, 2).await.unwrap();
    sum.signal(Sum::ADD, 3).await.unwrap();
    env.worker(|worker| worker.workflow::<Sum>()).await.unwrap();
    assert_eq!(sum.result().await.unwrap(), 5);
    PAGE.check("the next run, when a signal was not read", &chain(&sum).await[1]);
}

#[tokio::test]
async fn updates_that_are_not_finished_go_along() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Sum>()).await.unwrap();
    let sum = env.client().start::<Sum>("sum", (0, 2)).await.unwrap();
    let asked = sum.update(Sum::ASK, ()).start().await.unwrap();
    sum.signal(Sum::ADD, 2).await.unwrap();
    let answered_by = asked.result().await.unwrap();
    sum.signal(Sum::ADD, 3).await.unwrap();
    assert_eq!(sum.result().await.unwrap(), 5);
    let runs = chain(&sum).await;
    assert_eq!(next_run(&runs[0]).unwrap().to_string(), answered_by);
    PAGE.check("the next run, when an update was not finished", &runs[1]);
}

#[tokio::test]
async fn an_update_that_is_not_finished_holds_a_run_that_returns_at_once() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Sum>()).await.unwrap();
    let sum = env.client().start::<Sum>("sum", (0, 1)).await.unwrap();
    let asked = sum.update(Sum::ASK, ()).start().await.unwrap();
    sum.signal(Sum::ADD, 2).await.unwrap();
    assert_eq!(sum.result().await.unwrap(), 2);
    let runs = chain(&sum).await;
    assert_eq!(asked.result().await.unwrap(), next_run(&runs[0]).unwrap().to_string());
    PAGE.check("the next run returns immediately, and an update was not finished", &runs[1]);
}

/// Adds numbers until one is zero, and continues as new whenever it is advised to.
#[derive(Default)]
struct Reader;

#[workflow]
impl Reader {
    #[run]
    async fn run(ctx: &Context<Self>, mut sum: u32) -> abide::Result<u32> {
        while !ctx.suggests_continue_as_new() {
            match ctx.receive(Self::ADD).await? {
                0 => return Ok(sum),
                number => sum += number,
            }
        }
        Err(ctx.continue_as_new(sum))
    }

    #[signal]
    fn add(number: u32);
}

#[tokio::test]
async fn many_signals_that_were_not_read_are_read_by_the_next_run() {
    let engine = Embedded::builder().limits(soon_long()).in_memory().await;
    let reader = engine.client().start::<Reader>("reader", 0).await.unwrap();
    for number in std::iter::repeat_n(1, 25).chain([0]) {
        reader.signal(Reader::ADD, number).await.unwrap();
    }
    engine.worker().build_id("test").workflow::<Reader>().spawn();
    assert_eq!(reader.result().await.unwrap(), 25);
    let runs = chain(&reader).await;
    assert_eq!(runs.len(), 2);
    PAGE.check("the next run, when more signals were not read than make a history long", &runs[1]);
}

/// Histories are long soon.
fn soon_long() -> Limits {
    Limits { events_suggested: 20, events: 40, events_reserve: 10, ..Limits::default() }
}

/// Goes on with other options, or as another type.
#[derive(Default)]
struct Caterpillar;

#[workflow]
impl Caterpillar {
    #[run]
    async fn run(ctx: &Context<Self>, plan: String) -> abide::Result<u32> {
        match plan.as_str() {
            "change" => {
                let next = ctx.next_run("rest".to_owned()).queue("large").memo("stage", &2);
                let next = next.run_timeout(minutes(1)).task_timeout(seconds(5));
                Err(next.retry(RetryPolicy::once()).into())
            }
            "fly" => Err(ctx.next_run_as::<Butterfly>(7).into()),
            "unknown queue" => Err(ctx.next_run(plan).queue("").into()),
            "grow" if ctx.suggests_continue_as_new() => {
                assert!(ctx.history_events() >= 20 && ctx.history_bytes() > 0);
                Err(ctx.continue_as_new("rest".to_owned()))
            }
            "grow" | "grow for ever" => loop {
                ctx.sleep(seconds(1)).await?;
                if plan == "grow" && ctx.suggests_continue_as_new() {
                    return Err(ctx.continue_as_new("rest".to_owned()));
                }
            },
            _ => Ok(1),
        }
    }
}

/// Another type.
#[derive(Default)]
struct Butterfly;

#[workflow]
impl Butterfly {
    #[run]
    async fn run(_ctx: &Context<Self>, number: u32) -> abide::Result<u32> {
        Ok(number)
    }
}

async fn caterpillar(client: &Client, plan: &str) -> WorkflowHandle<Caterpillar> {
    client.start::<Caterpillar>("caterpillar", plan.to_owned()).await.unwrap()
}

#[tokio::test]
async fn the_next_run_has_other_options() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Caterpillar>()).await.unwrap();
    env.worker(|worker| worker.queue("large").workflow::<Caterpillar>()).await.unwrap();
    let run = caterpillar(&env.client(), "change").await;
    assert_eq!(run.result().await.unwrap(), 1);
    let next = run.describe().await.unwrap();
    assert_eq!((next.queue.as_str(), next.deadline.is_some()), ("large", true));
    assert_eq!(next.memo::<u32>("stage").unwrap().unwrap(), 2);
    PAGE.check("a run continues as new with other options", &run.history().await.unwrap());
}

#[tokio::test]
async fn the_next_run_is_of_another_type() {
    let env = TestEnvironment::new().await;
    let set_up = |worker: Worker| worker.workflow::<Caterpillar>().workflow::<Butterfly>();
    env.worker(set_up).await.unwrap();
    let run = caterpillar(&env.client(), "fly").await;
    assert_eq!(run.result().await.unwrap(), 7);
    assert_eq!(run.describe().await.unwrap().workflow_type, "Butterfly");
    PAGE.check("a run continues as new as another type", &run.history().await.unwrap());
}

#[tokio::test]
async fn options_that_cannot_be_are_named() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Caterpillar>()).await.unwrap();
    let run = caterpillar(&env.client(), "unknown queue").await;
    env.skip(seconds(1)).await;
    let trouble = run.describe().await.unwrap().trouble.unwrap();
    assert_eq!(trouble.failure.message(), "command 1: queue is empty");
    PAGE.check("a run cannot continue as it wishes", &run.history().await.unwrap());
}

/// An engine whose histories are long soon, and its run.
async fn grown(plan: &str) -> (Embedded, WorkflowHandle<Caterpillar>) {
    let now = Timestamp::from_unix_millis(1_800_000_000_000);
    let clock = abide_embedded::clock::ManualClock::new(now);
    let clock = std::sync::Arc::new(clock);
    let engine = Embedded::builder().limits(soon_long()).clock(clock.clone()).in_memory().await;
    engine.worker().build_id("test").workflow::<Caterpillar>().spawn();
    let run = caterpillar(&engine.client(), plan).await;
    let mut follower = run.follow_history();
    while let Some(events) = follower.next().await.unwrap() {
        let slept = events.iter().any(|event| matches!(event.fact(), Fact::TimerStarted(_)));
        if slept {
            use abide_embedded::clock::Clock;
            clock.move_to(clock.now().saturating_add(seconds(1)));
        }
    }
    (engine, run)
}

#[tokio::test]
async fn a_long_history_asks_for_a_new_run() {
    let (_engine, run) = grown("grow").await;
    assert_eq!(run.result().await.unwrap(), 1);
    PAGE.check(
        "a history grows long, and its code takes the advice",
        &run.history().await.unwrap(),
    );
}

#[tokio::test]
async fn a_history_that_grows_for_ever_is_ended() {
    let (_engine, run) = grown("grow for ever").await;
    let reason = "the history would exceed the limit of 50 events".to_owned();
    assert_eq!(run.result().await, Err(ClientError::RunTerminated(reason)));
    PAGE.check("a history reaches its limit", &run.history().await.unwrap());
}
