//! Nine ways in which an engine can lose a wake, known from one that does: timers after a restart, who
//! waits kept in memory, a wake during a task, facts without their task, timers taken for each other,
//! work given again without its data, credit lost by idling, signal timeouts and results forgotten.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use abide::client::HistoryEvent;
use abide::{ClientError, Worker, prelude::*};
use abide_core::{
    event::{Fact, Origin},
    ids::ExecutionId,
};
use abide_sdk_testing::{ReplayError, TestEnvironment, replay_history};
use abide_store::rows::WorkKind;

use crate::site::{Hold, Site, count, names, timers, until, until_count};

#[derive(Default)]
struct Sleeper;

#[workflow]
impl Sleeper {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(hours(1)).await
    }
}

/// The first attempt fails, and the second comes after a minute.
struct Bank(Arc<Mutex<Vec<Attempt>>>);

/// What an attempt was given.
#[derive(Clone, Debug, PartialEq)]
struct Attempt {
    number: u32,
    input: (String, u64),
}

#[activities]
impl Bank {
    #[activity]
    async fn charge(
        &self,
        ctx: ActivityContext,
        card: String,
        cents: u64,
    ) -> Result<String, ActivityError> {
        let number = ctx.attempt();
        let hang = {
            let mut attempts = self.0.lock().unwrap();
            attempts.push(Attempt { number, input: (card, cents) });
            attempts.len() == 1
        };
        match number {
            1 if hang => std::future::pending().await,
            1 => Err(ActivityError::new("the line is busy")),
            2 => Ok("charged".into()),
            _ => Err(ActivityError::new("one attempt too many")),
        }
    }
}

/// Fails the first time that it is called for an execution.
#[derive(Clone, Default)]
struct Flaky(Arc<Mutex<BTreeSet<ExecutionId>>>);

#[activities]
impl Flaky {
    #[activity]
    async fn call(&self, ctx: ActivityContext) -> Result<u32, ActivityError> {
        let first = self.0.lock().unwrap().insert(ctx.execution_id().clone());
        if first { Err(ActivityError::new("not yet")) } else { Ok(1) }
    }
}

fn policy() -> RetryPolicy {
    RetryPolicy::default().initial_interval(minutes(1)).maximum_attempts(2)
}

#[derive(Default)]
struct Retried;

#[workflow]
impl Retried {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        ctx.activity(Flaky::call, ()).retry(policy()).await
    }
}

fn all(worker: Worker) -> Worker {
    worker.workflow::<Sleeper>().workflow::<Order>()
}

fn fired(fact: &Fact) -> bool {
    matches!(fact, Fact::TimerFired(_))
}

fn started(fact: &Fact) -> bool {
    matches!(fact, Fact::TimerStarted(_))
}

/// 1: the firing is written *and* the run goes on, for sleeps.
#[tokio::test]
async fn a_timer_that_fires_after_a_restart_wakes_its_run() {
    let mut site = Site::open().await;
    let worker = site.work(all);
    let sleeper = site.client().start::<Sleeper>("sleeper", ()).await.unwrap();
    until(&sleeper, started).await;
    worker.kill().await;
    site.reopen().await;
    let worker = site.work(all);
    site.pass(hours(1));
    site.client().handle::<Sleeper>("sleeper").result().await.unwrap();
    worker.kill().await;
}

/// 1: the same for the delay before an attempt.
#[tokio::test]
async fn a_retry_that_waits_over_a_restart_is_made() {
    let mut site = Site::open().await;
    let bank = Flaky::default();
    let set_up = |worker: Worker| worker.workflow::<Retried>().activities(bank.clone());
    let worker = site.work(set_up);
    let retried = site.client().start::<Retried>("retried", ()).await.unwrap();
    until(&retried, |fact| matches!(fact, Fact::ActivityScheduled(_))).await;
    // The first attempt has failed when its delay is listed as a wait.
    while site.shown("retried").await.activities.iter().all(|activity| activity.attempt == 1) {
        tokio::task::yield_now().await;
    }
    worker.kill().await;
    site.reopen().await;
    let worker = site.work(set_up);
    site.pass(minutes(1));
    assert_eq!(site.client().handle::<Retried>("retried").result().await.unwrap(), 1);
    worker.kill().await;
}

/// 1: the same for the time that a run may take.
#[tokio::test]
async fn a_run_timeout_holds_over_a_restart() {
    let mut site = Site::open().await;
    let start = site.client().start::<Sleeper>("sleeper", ()).run_timeout(minutes(5));
    start.await.unwrap();
    site.crash();
    site.pass(hours(1));
    site.reopen().await;
    let result = site.client().handle::<Sleeper>("sleeper").result().await;
    assert_eq!(result, Err(ClientError::RunTimedOut));
}

#[derive(Default)]
struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>, timeout: Duration) -> abide::Result<Option<String>> {
        Ok(ctx.receive(Self::PAID).timeout(timeout).await?.ok())
    }

    #[signal]
    fn paid(by: String);
}

/// 2: that a run waits is known from its log, not from a process.
#[tokio::test]
async fn a_signal_after_a_restart_wakes_the_run() {
    let mut site = Site::open().await;
    let worker = site.work(all);
    let order = site.client().start::<Order>("order", hours(1)).await.unwrap();
    until(&order, started).await;
    worker.kill().await;
    site.reopen().await;
    let order = site.client().handle::<Order>("order");
    order.signal(Order::PAID, "Ann").await.unwrap();
    let worker = site.work(all);
    assert_eq!(order.result().await.unwrap(), Some("Ann".into()));
    worker.kill().await;
}

static FIRST_TASK: Hold = Hold::new();

/// Stands in the middle of its first task until the test lets it go on.
#[derive(Default)]
struct SlowStarter;

#[workflow]
impl SlowStarter {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        FIRST_TASK.pass();
        ctx.receive(Self::PAID).await
    }

    #[signal]
    fn paid(by: String);
}

/// 3: the signal comes after the task was given out and before it has said that the run waits.
#[tokio::test]
async fn a_signal_during_a_task_is_never_lost() {
    let site = Site::open().await;
    let worker = site.work(|worker| worker.workflow::<SlowStarter>());
    let slow = site.client().start::<SlowStarter>("slow", ()).await.unwrap();
    FIRST_TASK.entered().await;
    slow.signal(SlowStarter::PAID, "Ann").await.unwrap();
    FIRST_TASK.open();
    assert_eq!(slow.result().await.unwrap(), "Ann");
    let expected =
        ["RunStarted", "TimerStarted", "SignalReceived", "TimerCancelled", "RunCompleted"];
    assert_eq!(names(&slow.history().await.unwrap()), expected);
    worker.kill().await;
}

static LATER_TASK: Hold = Hold::new();

/// Sleeps, and stands in the middle of a later task.
#[derive(Default)]
struct SlowSleeper;

#[workflow]
impl SlowSleeper {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(seconds(5)).await
    }

    #[signal]
    fn look(&mut self) {
        LATER_TASK.pass();
    }
}

/// 3: the same for a timer that fires during a task.
#[tokio::test]
async fn a_timer_that_fires_during_a_task_is_never_lost() {
    let site = Site::open().await;
    let worker = site.work(|worker| worker.workflow::<SlowSleeper>());
    let slow = site.client().start::<SlowSleeper>("slow", ()).await.unwrap();
    until(&slow, started).await;
    slow.signal(SlowSleeper::LOOK, ()).await.unwrap();
    LATER_TASK.entered().await;
    // Less than the task timeout, so that it is not given to another worker.
    let rows = site.log_rows("slow").await;
    site.pass(seconds(5));
    while site.log_rows("slow").await == rows {
        tokio::task::yield_now().await;
    }
    LATER_TASK.open();
    slow.result().await.unwrap();
    let history = slow.history().await.unwrap();
    let facts: Vec<_> = history.iter().map(|event| event.name()).collect();
    let (closed, fired) = ("TaskCompleted", "TimerFired");
    let after = facts.iter().position(|name| *name == fired).unwrap();
    assert_eq!(facts[after - 1], closed, "numbered when the task had closed: {facts:?}");
    worker.kill().await;
}

/// 4: an event and the task that it causes are one transaction.
#[tokio::test]
async fn a_fact_and_the_task_that_it_causes_are_written_together() {
    let mut site = Site::open().await;
    let worker = site.work(all);
    let order = site.client().start::<Order>("order", hours(1)).await.unwrap();
    until(&order, started).await;
    worker.kill().await;
    order.signal(Order::PAID, "Ann").await.unwrap();
    site.crash();
    let rows = site.rows("order").await;
    let kinds: Vec<_> = rows.tasks.iter().map(|task| task.key.kind).collect();
    assert_eq!(kinds, [WorkKind::Workflow]);
    assert_eq!((rows.due.len(), rows.waits.len()), (1, 1), "and the timer still has its rows");
    site.reopen().await;
    let history = site.client().handle::<Order>("order").history().await.unwrap();
    assert_eq!(history.last().unwrap().name(), "TaskScheduled");
}

/// Every kind of thing that ends by time, one after the other.
#[derive(Default)]
struct Everything {
    never: bool,
}

#[workflow]
impl Everything {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        let engine = ctx.activity(Flaky::call, ()).retry(policy()).await?;
        let recorded = policy().recorded();
        let own = ctx.activity(Flaky::call, ()).retry(recorded).await?;
        ctx.sleep(minutes(1)).await?;
        assert!(ctx.receive(Self::NOTHING).timeout(minutes(1)).await?.is_timed_out());
        let never = ctx.wait_until(condition!("never", |it| it.never));
        assert!(never.timeout(minutes(1)).await?.is_timed_out());
        ctx.sleep(minutes(1)).await?;
        Ok(engine + own)
    }

    #[signal]
    fn nothing();

    #[signal]
    fn look(&mut self) {
        self.never = false;
    }
}

/// The same steps, with a sleep in the place of the recorded retry.
#[derive(Default)]
struct SleepsInstead;

#[workflow(name = "Everything")]
impl SleepsInstead {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.activity(Flaky::call, ()).retry(policy()).await?;
        drop(ctx.activity(Flaky::call, ()).await);
        ctx.sleep(minutes(1)).await
    }
}

async fn everything() -> Vec<HistoryEvent> {
    let env = TestEnvironment::new().await;
    let set_up = |worker: Worker| {
        worker.workflow::<Everything>().activities(Flaky::default()).max_cached_runs(0)
    };
    env.worker(set_up).await.unwrap();
    let start = env.client().start::<Everything>("everything", ()).run_timeout(hours(1));
    let handle = start.await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 2);
    handle.history().await.unwrap()
}

/// 5: each timer says what it is, and what the engine times for itself is no timer of the run.
#[tokio::test]
async fn retries_timeouts_and_sleeps_never_match_each_other_on_replay() {
    let history = everything().await;
    let origins: Vec<_> = timers(&history).into_iter().map(|timer| timer.origin.unwrap()).collect();
    let [retry, Origin::CreateTimer, signal, condition, Origin::CreateTimer] = &*origins else {
        panic!("the run's timeout and the engine's own retry are no timers: {origins:?}");
    };
    assert!(matches!(retry, Origin::ActivityRetry { .. }));
    assert!(matches!(signal, Origin::ExternalEvent { name } if name == "nothing"));
    assert!(matches!(condition, Origin::Condition { key: Some(key), .. } if key == "never"));
    replay_history::<Everything>(history.clone()).unwrap();
    let Err(ReplayError::Mismatch { mismatch, .. }) = replay_history::<SleepsInstead>(history)
    else {
        panic!("a sleep is no retry");
    };
    assert!(mismatch.recorded().next().unwrap().contains("activity retry"), "{mismatch}");
    assert!(mismatch.expected().next().unwrap().contains("sleep"), "{mismatch}");
}

/// The card is charged under the policy.
#[derive(Default)]
struct Sale;

#[workflow]
impl Sale {
    #[run]
    async fn run(ctx: &Context<Self>, card: String, cents: u64) -> abide::Result<String> {
        ctx.activity(Bank::charge, (card, cents)).retry(policy()).await
    }
}

/// 6: the worker dies in the first attempt; then it fails, as its policy says, and is made again.
#[tokio::test]
async fn work_that_is_given_again_is_given_whole() {
    let site = Site::open().await;
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let bank = || Bank(Arc::clone(&attempts));
    let set_up = |worker: Worker| worker.workflow::<Sale>().activities(bank());
    let worker = site.work(set_up);
    let start = site.client().start::<Sale>("sale", ("card-7", 4200));
    let sale = start.await.unwrap();
    while attempts.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    worker.kill().await;
    let worker = site.work(set_up);
    while site.shown("sale").await.activities.iter().all(|activity| activity.attempt == 1) {
        tokio::task::yield_now().await;
    }
    site.pass(minutes(1));
    assert_eq!(sale.result().await.unwrap(), "charged");
    let attempt = |number| Attempt { number, input: ("card-7".into(), 4200) };
    assert_eq!(
        *attempts.lock().unwrap(),
        [attempt(1), attempt(1), attempt(2)],
        "the lost attempt does not count, and nothing of it is forgotten"
    );
    worker.kill().await;
}

/// 7: the worker can take one task, and nothing comes for a day.
#[tokio::test]
async fn a_worker_that_was_idle_for_a_day_is_given_the_next_task() {
    let env = TestEnvironment::new().await;
    let set_up = |worker: Worker| all(worker).max_concurrent_tasks(1);
    env.worker(set_up).await.unwrap();
    for number in 0..3 {
        env.skip(days(1)).await;
        let id = format!("sleeper-{number}");
        env.client().start::<Sleeper>(id, ()).await.unwrap().result().await.unwrap();
    }
}

/// 8: the deadline of a wait for a signal is a row like any other.
#[tokio::test]
async fn a_signal_timeout_holds_over_a_restart() {
    let mut site = Site::open().await;
    let worker = site.work(all);
    let order = site.client().start::<Order>("order", minutes(30)).await.unwrap();
    until(&order, started).await;
    worker.kill().await;
    site.crash();
    site.pass(minutes(30));
    site.reopen().await;
    let order = site.client().handle::<Order>("order");
    until(&order, fired).await;
    let worker = site.work(all);
    assert_eq!(order.result().await.unwrap(), None);
    worker.kill().await;
}

#[activity]
async fn double(number: u32) -> u32 {
    number * 2
}

#[derive(Default)]
struct Sums;

#[workflow]
impl Sums {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        let one = ctx.activity(double, 1).start();
        let two = ctx.activity(double, 2).await?;
        Ok(one.await? + two)
    }
}

/// 9: the end of an activity wakes the run, which gets its result, also after a restart in between.
#[tokio::test]
async fn the_result_of_an_activity_wakes_its_run() {
    let mut site = Site::open().await;
    let sums = site.client().start::<Sums>("sums", ()).await.unwrap();
    let worker = site.work(|worker| worker.workflow::<Sums>());
    until_count(&sums, 2, |fact| matches!(fact, Fact::ActivityScheduled(_))).await;
    assert_eq!(count(&sums.history().await.unwrap(), "RunCompleted"), 0, "not before its results");
    worker.kill().await;
    let worker = site.work(|worker| worker.activity(double));
    until_count(&sums, 2, |fact| matches!(fact, Fact::ActivityCompleted(_))).await;
    worker.kill().await;
    site.reopen().await;
    let worker = site.work(|worker| worker.workflow::<Sums>());
    assert_eq!(site.client().handle::<Sums>("sums").result().await.unwrap(), 6);
    worker.kill().await;
}

#[derive(Default)]
struct Counter {
    count: u32,
}

#[workflow]
impl Counter {
    #[run]
    async fn run(ctx: &Context<Self>, expected: u32) -> abide::Result<u32> {
        let all = condition!(|counter| counter.count >= expected);
        ctx.wait_until(all).await?;
        Ok(ctx.read(|counter| counter.count))
    }

    #[signal]
    fn add(&mut self) {
        self.count += 1;
    }
}

/// The numbers of events are given by one writer, so that nothing collides.
#[tokio::test]
async fn of_many_signals_at_the_same_time_none_is_lost() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Counter>()).await.unwrap();
    let counter = env.client().start::<Counter>("counter", 100).await.unwrap();
    let senders: Vec<_> = (0..100)
        .map(|_| {
            let counter = counter.clone();
            tokio::spawn(async move { counter.signal(Counter::ADD, ()).await })
        })
        .collect();
    for sender in senders {
        sender.await.unwrap().unwrap();
    }
    assert_eq!(counter.result().await.unwrap(), 100);
}
