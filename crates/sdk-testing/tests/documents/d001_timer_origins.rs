//! Timer origins: why each timer exists, on every timer that is written; and the sentinel of waits
//! without deadline. The first eight of the document's thirteen cases, through the engine.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use abide::client::HistoryEvent;
use abide::{
    Timestamp, Worker,
    list::{WaitFilter, WaitKind},
    prelude::*,
};
use abide_core::{
    event::{Fact, Origin},
    retry::RetryState,
};
use abide_sdk_testing::{TestEnvironment, record, replay_history};

use crate::site::{Site, names, timers, until};

fn external_event(name: &str) -> Option<Origin> {
    Some(Origin::ExternalEvent { name: name.into() })
}

/// One wait, as its input says.
#[derive(Default)]
struct One;

#[workflow]
impl One {
    #[run]
    async fn run(ctx: &Context<Self>, wait: String, time: Duration) -> abide::Result<String> {
        let signal = match wait.as_str() {
            "sleep" => {
                ctx.sleep(time).await?;
                return Ok("slept".into());
            }
            "for ever" => return ctx.receive(Self::MY_EVENT).await,
            "until the end of time" => {
                ctx.sleep_until(Timestamp::NEVER).await?;
                return Ok("slept".into());
            }
            "sleep and look" => {
                ctx.sleep(time).await?;
                ctx.receive(Self::MY_EVENT).timeout(Duration::ZERO).await?
            }
            _ => ctx.receive(Self::MY_EVENT).timeout(time).await?,
        };
        Ok(signal.ok().unwrap_or_else(|| "timed out".into()))
    }

    #[signal(name = "myEvent")]
    fn my_event(value: String);
}

/// The history of a run that has just done its first task.
async fn begun(wait: &str, time: Duration) -> (Timestamp, Vec<HistoryEvent>) {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<One>()).await.unwrap();
    let one = env.client().start::<One>("one", (wait.to_owned(), time)).await.unwrap();
    env.skip(Duration::ZERO).await;
    (env.now(), one.history().await.unwrap())
}

#[tokio::test]
async fn timer_origin_01_a_sleep_is_an_explicit_timer() {
    let (now, history) = begun("sleep", seconds(5)).await;
    let timer = timers(&history).remove(0);
    assert_eq!((timer.origin, timer.fire_at), (Some(Origin::CreateTimer), add(now, 5)));
}

#[tokio::test]
async fn timer_origin_02_a_signal_wait_with_deadline_names_the_signal() {
    let (now, history) = begun("signal", seconds(5)).await;
    let timer = timers(&history).remove(0);
    assert_eq!((timer.origin, timer.fire_at), (external_event("myEvent"), add(now, 5)));
}

fn add(now: Timestamp, time: u64) -> Timestamp {
    now.saturating_add(seconds(time))
}

/// Fails twice.
struct Card(AtomicU32);

#[activities]
impl Card {
    #[activity]
    async fn charge(&self, ctx: ActivityContext) -> Result<String, ActivityError> {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Err(ActivityError::new("declined")),
            _ => Ok(ctx.execution_id().to_string()),
        }
    }
}

fn recorded() -> RetryPolicy {
    RetryPolicy::default().recorded().maximum_attempts(3)
}

#[derive(Default)]
struct Sale;

#[workflow]
impl Sale {
    #[run]
    async fn run(ctx: &Context<Self>, recorded: bool) -> abide::Result<String> {
        let policy = RetryPolicy::default().maximum_attempts(3);
        let policy = if recorded { policy.recorded() } else { policy };
        ctx.activity(Card::charge, ()).retry(policy).await
    }
}

fn sales(worker: Worker) -> Worker {
    worker.workflow::<Sale>().activities(Card(AtomicU32::new(0)))
}

/// The executions of a history's activities, and those that its timers name.
fn executions(history: &[HistoryEvent]) -> (Vec<String>, Vec<String>) {
    let (mut scheduled, mut named) = (Vec::new(), Vec::new());
    for event in history {
        match event.fact() {
            Fact::ActivityScheduled(it) => scheduled.push(it.execution.to_string()),
            Fact::TimerStarted(it) => match &it.spec.origin {
                Some(Origin::ActivityRetry { execution }) => named.push(execution.to_string()),
                other => panic!("not the timer of a retry: {other:?}"),
            },
            _ => {}
        }
    }
    (scheduled, named)
}

#[tokio::test]
async fn timer_origin_03_and_04_an_activity_retry_names_the_execution_of_every_attempt() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| sales(worker).max_cached_runs(0)).await.unwrap();
    let sale = env.client().start::<Sale>("sale", true).await.unwrap();
    let execution = sale.result().await.unwrap();
    let (scheduled, named) = executions(&sale.history().await.unwrap());
    assert_eq!(scheduled, vec![execution.clone(); 3], "every attempt carries the same id");
    assert_eq!(named, vec![execution; 2], "and so does every delay between them");
}

/// Which attempts of its activities a history has, and what it says about the next one of each failure.
fn attempts(history: &[HistoryEvent]) -> (Vec<u32>, Vec<RetryState>) {
    let (mut attempts, mut states) = (Vec::new(), Vec::new());
    for event in history {
        match event.fact() {
            Fact::ActivityStarted(started) => attempts.push(started.attempt),
            Fact::ActivityFailed(failed) => states.push(failed.retry_state),
            _ => {}
        }
    }
    (attempts, states)
}

/// Says which attempt it is, and fails.
#[activity]
async fn count(ctx: ActivityContext) -> Result<(), ActivityError> {
    Err(ActivityError::new(ctx.attempt().to_string()))
}

/// Gives what each attempt has said, and why there was no further one.
#[derive(Default)]
struct Counted;

#[workflow]
impl Counted {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        match ctx.activity(count, ()).retry(recorded()).await {
            Err(Error::Activity(failed)) => {
                Ok(format!("{} {:?}", failed.failure.message(), failed.retry_state))
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn recorded_retries_are_counted_and_say_what_follows() {
    use RetryState::{InProgress, MaximumAttemptsReached};
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Counted>().activity(count)).await.unwrap();
    let counted = env.client().start::<Counted>("counted", ()).await.unwrap();
    assert_eq!(counted.result().await.unwrap(), "3 MaximumAttemptsReached");
    let history = counted.history().await.unwrap();
    let expected = (vec![1, 2, 3], vec![InProgress, InProgress, MaximumAttemptsReached]);
    assert_eq!(attempts(&history), expected);
    replay_history::<Counted>(history).unwrap();
}

/// Retries that the engine makes are no timers of the run, but their delay is a wait that says as much.
#[tokio::test]
async fn a_retry_that_the_engine_makes_shows_the_same_origin_while_it_waits() {
    let site = Site::open().await;
    let worker = site.work(sales);
    let sale = site.client().start::<Sale>("sale", false).await.unwrap();
    let filter = WaitFilter::new().kind(WaitKind::ActivityRetry);
    let wait = loop {
        match site.client().waits(filter.clone()).take(10).await.unwrap().pop() {
            Some(wait) => break wait,
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!(wait.until, Some(add(site.now(), 1)));
    let execution = wait.name.as_str().into();
    let shown = site.shown("sale").await.waits.remove(0);
    assert_eq!(shown.origin, Some(Origin::ActivityRetry { execution }));
    // The second delay is not asked for before the first is over.
    site.pass(seconds(1));
    while site.client().waits(filter.clone()).take(10).await.unwrap().iter().all(|it| *it == wait) {
        tokio::task::yield_now().await;
    }
    site.pass(seconds(2));
    assert_eq!(sale.result().await.unwrap(), wait.name, "the execution that the activity knows");
    let history = sale.history().await.unwrap();
    assert!(timers(&history).is_empty());
    worker.kill().await;
}

/// A child that fails, so often as the test says.
#[derive(Default)]
struct Shipment;

#[workflow]
impl Shipment {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let id = ctx.workflow_id().to_string();
        if id.ends_with("attempt-3") { Ok(id) } else { Err(Error::new("no truck")) }
    }
}

#[derive(Default)]
struct Shop;

#[workflow]
impl Shop {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        ctx.child::<Shipment>("shipment-7", ()).retry(recorded()).await
    }
}

#[tokio::test]
async fn timer_origin_05_and_06_a_child_retry_always_names_the_first_child() {
    let env = TestEnvironment::new().await;
    let set_up =
        |worker: Worker| worker.workflow::<Shop>().workflow::<Shipment>().max_cached_runs(0);
    env.worker(set_up).await.unwrap();
    let shop = env.client().start::<Shop>("shop", ()).await.unwrap();
    assert_eq!(shop.result().await.unwrap(), "shipment-7-attempt-3");
    let history = shop.history().await.unwrap();
    let first = Some(Origin::ChildWorkflowRetry { workflow: "shipment-7".into() });
    let origins: Vec<_> = timers(&history).into_iter().map(|timer| timer.origin).collect();
    assert_eq!(origins, [first.clone(), first], "also when the user gave the id");
    let children: Vec<_> = history
        .iter()
        .filter_map(|event| match event.fact() {
            Fact::ChildInitiated(it) => Some(it.child.workflow.workflow.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(children, ["shipment-7", "shipment-7-attempt-2", "shipment-7-attempt-3"]);
}

/// Gives why there was no other attempt.
#[derive(Default)]
struct Bankrupt;

#[workflow]
impl Bankrupt {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let twice = recorded().maximum_attempts(2);
        match ctx.child::<Shipment>("shipment-8", ()).retry(twice).await {
            Err(Error::Child(failed)) => Ok(format!("{:?}", failed.retry_state)),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn the_last_recorded_retry_of_a_child_says_why_no_other_follows() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Bankrupt>().workflow::<Shipment>()).await.unwrap();
    let shop = env.client().start::<Bankrupt>("bankrupt", ()).await.unwrap();
    assert_eq!(shop.result().await.unwrap(), "MaximumAttemptsReached");
}

/// A child that the engine tries again.
#[derive(Default)]
struct Depot;

#[workflow]
impl Depot {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let policy = RetryPolicy::default().maximum_attempts(2);
        ctx.child::<Shipment>("shipment-9", ()).retry(policy).await
    }
}

/// The retry is the child's next run, which has the id of the first and waits for its beginning.
#[tokio::test]
async fn a_retry_of_a_child_that_the_engine_makes_shows_its_origin_while_it_waits() {
    let site = Site::open().await;
    let worker =
        site.work(|worker| worker.workflow::<Depot>().workflow::<Shipment>().max_cached_runs(0));
    let depot = site.client().start::<Depot>("depot", ()).await.unwrap();
    let filter = WaitFilter::new().kind(WaitKind::ChildRetry);
    let wait = loop {
        match site.client().waits(filter.clone()).take(10).await.unwrap().pop() {
            Some(wait) => break wait,
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!((wait.name.as_str(), wait.until), ("shipment-9", Some(add(site.now(), 1))));
    let described = site.shown("shipment-9").await;
    let workflow = "shipment-9".into();
    assert_eq!(described.waits[0].origin, Some(Origin::ChildWorkflowRetry { workflow }));
    assert_eq!((described.attempt, described.begins_at), (2, wait.until));
    site.pass(seconds(1));
    depot.result().await.expect_err("it fails twice");
    assert_eq!(site.client().waits(filter).take(10).await.unwrap(), []);
    worker.kill().await;
}

#[tokio::test]
async fn timer_origin_07_a_signal_wait_without_deadline_has_the_sentinel() {
    let (_, history) = begun("for ever", Duration::ZERO).await;
    let timer = timers(&history).remove(0);
    assert_eq!((timer.origin.clone(), timer.fire_at), (external_event("myEvent"), sentinel()));
    assert!(timer.optional());
}

#[tokio::test]
async fn timer_origin_08_a_signal_wait_of_no_time_starts_no_timer() {
    let (_, history) = begun("signal", Duration::ZERO).await;
    assert_eq!(names(&history), ["RunStarted", "RunCompleted"], "timed out at once");
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<One>()).await.unwrap();
    let input = ("sleep and look".to_owned(), minutes(1));
    let one = env.client().start::<One>("one", input).await.unwrap();
    env.skip(seconds(30)).await;
    one.signal(One::MY_EVENT, "here").await.unwrap();
    assert_eq!(one.result().await.unwrap(), "here", "what is there is taken");
    assert_eq!(timers(&one.history().await.unwrap()).len(), 1, "that of the sleep");
}

/// The value that everybody must recognise, to the nanosecond.
fn sentinel() -> Timestamp {
    "9999-12-31T23:59:59.999999999Z".parse().expect("a time")
}

/// Through memory, through SQLite and a restart, and through the bytes that histories are kept in.
#[tokio::test]
async fn the_sentinel_survives_exactly() {
    assert_eq!((sentinel().seconds(), sentinel().nanos()), (253_402_300_799, 999_999_999));
    let mut site = Site::open().await;
    let worker = site.work(|worker| worker.workflow::<One>());
    let input = ("for ever".to_owned(), Duration::ZERO);
    let one = site.client().start::<One>("one", input).await.unwrap();
    let history = until(&one, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    worker.kill().await;
    assert_eq!(timers(&history)[0].fire_at, sentinel());
    assert_eq!(one.describe().await.unwrap().waits[0].until, None);
    site.crash();
    let rows = site.rows("one").await;
    assert_eq!((rows.waits[0].until, rows.due.len()), (sentinel(), 0), "never due");
    site.reopen().await;
    let one = site.client().handle::<One>("one");
    let again = one.history().await.unwrap();
    assert_eq!(again, history);
    assert_eq!(one.describe().await.unwrap().waits[0].until, None);
    let waits = site.client().waits(WaitFilter::default()).take(10).await.unwrap();
    assert_eq!(waits[0].until, None);
    replay_history::<One>(record(&history)).unwrap();
}

/// Both what it is for and when it is due must be right, or it is an ordinary timer.
#[tokio::test]
async fn neither_a_far_sleep_nor_a_long_timeout_is_optional() {
    let (_, history) = begun("until the end of time", Duration::ZERO).await;
    let far = timers(&history).remove(0);
    assert_eq!((far.origin.clone(), far.fire_at), (Some(Origin::CreateTimer), Timestamp::LATEST));
    assert!(!far.optional());
    let (_, history) = begun("signal", years(7_000)).await;
    let long = timers(&history).remove(0);
    assert_eq!(long.origin, external_event("myEvent"));
    assert!(!long.optional() && long.fire_at < sentinel());
}

/// The signal stands before the firing, so it has won; the firing is in history and ignored.
#[tokio::test]
async fn a_late_firing_after_the_event_won_changes_nothing() {
    let site = Site::open().await;
    let ones = |worker: Worker| worker.workflow::<One>().max_cached_runs(0);
    let worker = site.work(ones);
    let input = ("signal".to_owned(), minutes(5));
    let one = site.client().start::<One>("one", input).await.unwrap();
    until(&one, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    worker.kill().await;
    one.signal(One::MY_EVENT, "in time").await.unwrap();
    site.pass(minutes(5));
    until(&one, |fact| matches!(fact, Fact::TimerFired(_))).await;
    let worker = site.work(ones);
    assert_eq!(one.result().await.unwrap(), "in time");
    let expected = ["RunStarted", "TimerStarted", "SignalReceived", "TimerFired", "RunCompleted"];
    let history = one.history().await.unwrap();
    assert_eq!(names(&history), expected);
    replay_history::<One>(history).unwrap();
    worker.kill().await;
}
