//! Timer origins and optional timers: why each timer exists, and how histories that lack the timers of
//! waits without deadline are replayed. The thirteen cases of the document, through the engine: a worker
//! of an older SDK begins the run where the document has an older history, and today's takes it over.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use abide::{Timestamp, Worker, list::RunStatus, prelude::*};
use abide_core::{
    command::Ask,
    event::{Event, Fact, Origin, TimerSpec},
    list::{WaitFilter, WaitKind},
};
use abide_sdk_testing::{TestEnvironment, record, replay_history};

use crate::{
    foreign::{OldWorker, activity, child, timer},
    site::{Site, count, names, timers, until},
};

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
            "for ever" => return ctx.receive(Self::my_event).await,
            "until the end of time" => {
                ctx.sleep_until(Timestamp::NEVER).await?;
                return Ok("slept".into());
            }
            "sleep and look" => {
                ctx.sleep(time).await?;
                ctx.receive(Self::my_event).timeout(Duration::ZERO).await?
            }
            _ => ctx.receive(Self::my_event).timeout(time).await?,
        };
        Ok(signal.in_time().unwrap_or_else(|| "timed out".into()))
    }

    #[signal(name = "myEvent")]
    fn my_event(value: String);
}

/// The history of a run that has just done its first task.
async fn begun(wait: &str, time: Duration) -> (Timestamp, Vec<Event>) {
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
    RetryPolicy { recorded: true, maximum_attempts: 3, ..RetryPolicy::default() }
}

#[derive(Default)]
struct Sale;

#[workflow]
impl Sale {
    #[run]
    async fn run(ctx: &Context<Self>, recorded: bool) -> abide::Result<String> {
        let policy = RetryPolicy { recorded, maximum_attempts: 3, ..RetryPolicy::default() };
        ctx.activity(Card::charge, ()).retry(policy).await
    }
}

fn sales(worker: Worker) -> Worker {
    worker.workflow::<Sale>().activities(Card(AtomicU32::new(0)))
}

/// The executions of a history's activities, and those that its timers name.
fn executions(history: &[Event]) -> (Vec<String>, Vec<String>) {
    let (mut scheduled, mut named) = (Vec::new(), Vec::new());
    for event in history {
        match &event.body.fact {
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

/// Retries that the engine makes are no timers of the run, but their delay is a wait that says as much.
#[tokio::test]
async fn a_retry_that_the_engine_makes_shows_the_same_origin_while_it_waits() {
    let site = Site::open().await;
    let worker = site.work(sales);
    let sale = site.client().start::<Sale>("sale", false).await.unwrap();
    let filter = WaitFilter { kind: Some(WaitKind::ActivityRetry), ..WaitFilter::default() };
    let wait = loop {
        match site.client().waits(filter.clone(), 10).await.unwrap().pop() {
            Some(wait) => break wait,
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!(wait.until, add(site.now(), 1));
    let execution = wait.name.as_str().into();
    let shown = sale.waits().await.unwrap().remove(0);
    assert_eq!(shown.origin, Some(Origin::ActivityRetry { execution }));
    // The second delay is not asked for before the first is over.
    site.pass(seconds(1));
    while site.client().waits(filter.clone(), 10).await.unwrap().iter().all(|it| *it == wait) {
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
        if id.ends_with("attempt-3") { Ok(id) } else { Err(Error::fail("no truck")) }
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
        .filter_map(|event| match &event.body.fact {
            Fact::ChildInitiated(it) => Some(it.child.workflow.workflow.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(children, ["shipment-7", "shipment-7-attempt-2", "shipment-7-attempt-3"]);
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
    one.signal(One::my_event, "here".into()).await.unwrap();
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
    assert_eq!(site.run("one").await.timers.values().next().unwrap().spec.fire_at, sentinel());
    site.crash();
    let rows = site.rows("one").await;
    assert_eq!((rows.waits[0].until, rows.due.len()), (sentinel(), 0), "never due");
    site.reopen().await;
    let one = site.client().handle::<One>("one");
    let again = one.history().await.unwrap();
    assert_eq!(again, history);
    assert_eq!(one.describe().await.unwrap().waits[0].until, sentinel());
    let waits = site.client().waits(WaitFilter::default(), 10).await.unwrap();
    assert_eq!(waits[0].until, sentinel());
    replay_history::<One>(record(&history)).unwrap();
}

/// Both what it is for and when it is due must be right, or it is an ordinary timer.
#[tokio::test]
async fn neither_a_far_sleep_nor_a_long_timeout_is_optional() {
    let (_, history) = begun("until the end of time", Duration::ZERO).await;
    let far = timers(&history).remove(0);
    assert_eq!((far.origin.clone(), far.fire_at), (Some(Origin::CreateTimer), sentinel()));
    assert!(!far.optional());
    let (_, history) = begun("signal", years(7_000)).await;
    let long = timers(&history).remove(0);
    assert_eq!(long.origin, external_event("myEvent"));
    assert!(!long.optional() && long.fire_at < sentinel());
}

#[tokio::test]
async fn timer_origin_09_a_recorded_optional_timer_is_matched() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<One>().max_cached_runs(0)).await.unwrap();
    let input = ("for ever".to_owned(), Duration::ZERO);
    let one = env.client().start::<One>("one", input).await.unwrap();
    env.skip(days(1)).await;
    one.signal(One::my_event, "payload".into()).await.unwrap();
    assert_eq!(one.result().await.unwrap(), "payload");
    let history = one.history().await.unwrap();
    assert_eq!((timers(&history).len(), count(&history, "TimerFired")), (1, 0));
    assert_eq!(count(&history, "TaskFailed"), 0);
}

#[activity(name = "A")]
async fn act_a() -> String {
    "a".into()
}

#[activity(name = "B")]
async fn act_b() -> String {
    "b".into()
}

#[derive(Default)]
struct Child;

#[workflow]
impl Child {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        Ok(ctx.workflow_id().to_string())
    }
}

/// What today's code does after a wait without deadline.
#[derive(Default)]
struct Waits {
    looked: u32,
}

#[workflow]
impl Waits {
    #[run]
    async fn run(ctx: &Context<Self>, then: String) -> abide::Result<String> {
        match then.as_str() {
            "activity" => {
                ctx.receive(Self::first).await?;
                ctx.activity(act_a, ()).await
            }
            "child" => {
                ctx.receive(Self::first).await?;
                ctx.child::<Child>("child-1", ()).await
            }
            "sleep" => {
                let payload = ctx.receive(Self::first).await?;
                ctx.sleep(seconds(5)).await?;
                Ok(payload)
            }
            "two activities" => {
                ctx.receive(Self::first).await?;
                let one = ctx.activity(act_a, ()).await?;
                ctx.receive(Self::second).await?;
                Ok(one + &ctx.activity(act_b, ()).await?)
            }
            "two children" => {
                let one = async {
                    ctx.receive(Self::first).await?;
                    ctx.child::<Child>("child-of-first", ()).await
                };
                let two = async {
                    ctx.receive(Self::second).await?;
                    ctx.child::<Child>("child-of-second", ()).await
                };
                let (one, two) = join!(one, two);
                Ok(format!("{} {}", one?, two?))
            }
            _ => ctx.receive(Self::first).await,
        }
    }

    #[signal]
    fn first(payload: String);

    #[signal]
    fn second(payload: String);

    #[signal]
    fn look(&mut self) {
        self.looked += 1;
    }

    #[query]
    fn looked(&self) -> u32 {
        self.looked
    }
}

fn today(worker: Worker) -> Worker {
    let worker = worker.workflow::<Waits>().workflow::<Child>().activity(act_a).activity(act_b);
    worker.max_cached_runs(0)
}

async fn old_run(site: &Site, then: &str) -> abide::WorkflowHandle<Waits> {
    let start = site.client().start::<Waits>("waits", then.to_owned());
    start.with_signal(Waits::first, "payload".into()).await.unwrap()
}

/// The run completed, and no timer of a wait without deadline ever came into its history.
async fn completed(handle: &abide::WorkflowHandle<Waits>, expected: &str) {
    assert_eq!(handle.result().await.unwrap(), expected);
    let history = handle.history().await.unwrap();
    assert!(timers(&history).iter().all(|timer| !timer.optional()), "none leaks");
    assert_eq!((count(&history, "RunCompleted"), count(&history, "TaskFailed")), (1, 0));
}

#[tokio::test]
async fn timer_origin_10_an_activity_stands_where_code_has_the_optional_timer() {
    let site = Site::open().await;
    let handle = old_run(&site, "activity").await;
    OldWorker::connect(site.engine()).task([activity("activity-1", "A")]).await;
    let worker = site.work(today);
    completed(&handle, "a").await;
    worker.kill().await;
}

#[tokio::test]
async fn timer_origin_11_a_child_stands_where_code_has_the_optional_timer() {
    let site = Site::open().await;
    let handle = old_run(&site, "child").await;
    OldWorker::connect(site.engine()).task([child("child-1", "Child")]).await;
    let worker = site.work(today);
    completed(&handle, "child-1").await;
    worker.kill().await;
}

#[tokio::test]
async fn timer_origin_12_a_sleep_stands_where_code_has_the_optional_timer() {
    for origin in [Some(Origin::CreateTimer), None] {
        let site = Site::open().await;
        let handle = old_run(&site, "sleep").await;
        let asked = timer("timer-1", add(site.now(), 5), origin);
        OldWorker::connect(site.engine()).task([asked]).await;
        let worker = site.work(today);
        site.pass(seconds(5));
        completed(&handle, "payload").await;
        worker.kill().await;
    }
}

#[tokio::test]
async fn timer_origin_13_two_optional_timers_are_absent() {
    let site = Site::open().await;
    let handle = old_run(&site, "two activities").await;
    let mut old = OldWorker::connect(site.engine());
    old.task([activity("activity-1", "A")]).await;
    let activities = site.work(|worker| worker.activity(act_a));
    old.task([]).await;
    handle.signal(Waits::second, "payload".into()).await.unwrap();
    old.task([activity("activity-2", "B")]).await;
    drop(old);
    activities.kill().await;
    let worker = site.work(today);
    completed(&handle, "ab").await;
    worker.kill().await;
}

#[tokio::test]
async fn two_optional_timers_interleaved_with_children_are_absent() {
    let site = Site::open().await;
    let start = site.client().start::<Waits>("waits", "two children".to_owned());
    let handle = start.await.unwrap();
    let mut old = OldWorker::connect(site.engine());
    old.task([]).await;
    // The second wait ends first.
    handle.signal(Waits::second, "2".into()).await.unwrap();
    old.task([child("child-of-second", "Child")]).await;
    drop(old);
    let worker = site.work(today);
    until(&handle, |fact| matches!(fact, Fact::ChildCompleted(_))).await;
    handle.signal(Waits::first, "1".into()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "child-of-first child-of-second");
    let history = handle.history().await.unwrap();
    assert_eq!(count(&history, "TaskFailed"), 0);
    let optional: Vec<_> = timers(&history).into_iter().filter(TimerSpec::optional).collect();
    assert_eq!(optional.len(), 1, "of the wait that was open when today's code came");
    assert_eq!(optional[0].origin, external_event("first"));
    worker.kill().await;
}

/// Nothing in the old history conflicts with the timer, so the first task of today's code writes it.
#[tokio::test]
async fn an_optional_timer_that_nothing_drops_leaks_to_history_and_is_matched_from_then_on() {
    let site = Site::open().await;
    let start = site.client().start::<Waits>("waits", "nothing".to_owned());
    let handle = start.await.unwrap();
    OldWorker::connect(site.engine()).task([]).await;
    assert!(site.run("waits").await.timers.is_empty());
    let worker = site.work(today);
    for looked in 1..=3 {
        handle.signal(Waits::look, ()).await.unwrap();
        assert_eq!(handle.query(Waits::looked, ()).await.unwrap(), looked);
        let timers = timers(&handle.history().await.unwrap());
        assert_eq!(timers.len(), 1, "written once");
        assert!(timers[0].optional());
    }
    handle.signal(Waits::first, "payload".into()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "payload");
    assert_eq!(count(&handle.history().await.unwrap(), "TaskFailed"), 0);
    worker.kill().await;
}

/// Only optional timers may be absent: any other step that history lacks blocks the run.
#[tokio::test]
async fn a_far_sleep_that_an_old_history_lacks_blocks_the_run() {
    let site = Site::open().await;
    let input = ("until the end of time".to_owned(), Duration::ZERO);
    let one = site.client().start::<One>("one", input).await.unwrap();
    OldWorker::connect(site.engine()).task([Ask::UpsertMemo(Default::default())]).await;
    let worker = site.work(|worker| worker.workflow::<One>());
    one.signal(One::my_event, "look".into()).await.unwrap();
    until(&one, |fact| matches!(fact, Fact::TaskFailed(_))).await;
    assert_eq!(one.describe().await.unwrap().status, RunStatus::ReplayBlocked);
    worker.kill().await;
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
    one.signal(One::my_event, "in time".into()).await.unwrap();
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
