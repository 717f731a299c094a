//! Durable sleep: a sleep is no thread but a row, of any length, matched in order on replay; waits for
//! a signal that give up; crashes of workers and engines in the middle of all that.

use std::time::Duration;

use abide::{Worker, prelude::*};
use abide_core::event::{Fact, Origin};
use abide_sdk_testing::{TestEnvironment, replay_history};

use crate::site::{Site, count, names, timers, until};

#[derive(Default)]
struct Sleeper;

#[workflow]
impl Sleeper {
    #[run]
    async fn run(ctx: &Context<Self>, time: Duration) -> abide::Result<Duration> {
        let begun = ctx.now();
        ctx.sleep(time).await?;
        Ok(ctx.now().saturating_since(begun))
    }
}

#[tokio::test]
async fn a_sleep_lasts_as_long_as_was_asked_from_a_millisecond_to_a_century() {
    let millisecond = Duration::from_millis(1);
    let lengths =
        [millisecond, 249 * millisecond, seconds(1), hours(24), days(30), years(1), years(100)];
    for length in lengths {
        let env = TestEnvironment::new().await;
        env.worker(|worker| worker.workflow::<Sleeper>()).await.unwrap();
        let begun = env.now();
        let sleeper = env.client().start::<Sleeper>("sleeper", length).await.unwrap();
        assert_eq!(sleeper.result().await.unwrap(), length, "the run's own clock says so");
        assert_eq!(env.now(), begun.saturating_add(length), "no polling: exactly then");
        let history = sleeper.history().await.unwrap();
        assert_eq!(names(&history), ["RunStarted", "TimerStarted", "TimerFired", "RunCompleted"]);
        assert_eq!(timers(&history)[0].fire_at, begun.saturating_add(length));
    }
}

/// The worker could run one task at a time, and has no room to keep a run.
#[tokio::test]
async fn a_sleeping_run_holds_no_place_in_its_worker() {
    let env = TestEnvironment::new().await;
    let small = |worker: Worker| {
        worker.workflow::<Sleeper>().max_concurrent_tasks(1).max_cached_runs(0).workflow_threads(1)
    };
    env.worker(small).await.unwrap();
    let (begun, client) = (env.now(), env.client());
    let mut sleepers = Vec::new();
    for number in 0..100 {
        sleepers.push(client.start::<Sleeper>(format!("s-{number}"), days(1)).await.unwrap());
    }
    for sleeper in sleepers {
        assert_eq!(sleeper.result().await.unwrap(), days(1));
    }
    assert_eq!(env.now().saturating_since(begun), days(1), "all slept at the same time");
}

#[activity]
async fn step(number: u32) -> u32 {
    number
}

#[derive(Default)]
struct Steps;

#[workflow]
impl Steps {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<u32>> {
        let mut done = vec![ctx.activity(step, 1).await?];
        ctx.sleep(hours(1)).await?;
        done.push(ctx.activity(step, 2).await?);
        ctx.sleep(hours(1)).await?;
        done.push(ctx.activity(step, 3).await?);
        Ok(done)
    }
}

/// The worker keeps nothing, so that every task runs the code from the top.
#[tokio::test]
async fn several_sleeps_are_timers_of_their_own_and_matched_in_order() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Steps>().activity(step).max_cached_runs(0))
        .await
        .unwrap();
    let begun = env.now();
    let steps = env.client().start::<Steps>("steps", ()).await.unwrap();
    assert_eq!(steps.result().await.unwrap(), [1, 2, 3]);
    let history = steps.history().await.unwrap();
    let due: Vec<_> = timers(&history).iter().map(|timer| timer.fire_at).collect();
    assert_eq!(due, [begun.saturating_add(hours(1)), begun.saturating_add(hours(2))]);
    let ids: Vec<_> = timers(&history).into_iter().map(|timer| timer.timer).collect();
    assert_ne!(ids[0], ids[1]);
    assert_eq!(count(&history, "ActivityScheduled"), 3, "no step is taken again");
    replay_history::<Steps>(history).unwrap();
}

#[derive(Default)]
struct Listener;

#[workflow]
impl Listener {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        Ok(match ctx.receive_any().timeout(minutes(30)).await? {
            Outcome::InTime(signal) => match signal.read(Self::PAID) {
                Some(cents) => format!("{} {}", signal.name(), cents?),
                None => signal.name().to_owned(),
            },
            Outcome::TimedOut => "timed out".into(),
        })
    }

    #[signal]
    fn paid(cents: u64);

    #[signal]
    fn refused();
}

#[tokio::test]
async fn a_wait_for_any_signal_tells_which_came() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Listener>()).await.unwrap();
    let client = env.client();
    let one = client.start::<Listener>("one", ()).await.unwrap();
    env.skip(minutes(29)).await;
    one.signal(Listener::PAID, 4200).await.unwrap();
    assert_eq!(one.result().await.unwrap(), "paid 4200");
    let two = client.start::<Listener>("two", ()).await.unwrap();
    two.signal(Listener::REFUSED, ()).await.unwrap();
    assert_eq!(two.result().await.unwrap(), "refused");
    let three = client.start::<Listener>("three", ()).await.unwrap();
    three.signal_untyped("from elsewhere", Vec::new()).await.unwrap();
    assert_eq!(three.result().await.unwrap(), "from elsewhere");
}

/// The document's engine writes no timer for such a wait, and so forgets it. This one does.
#[tokio::test]
async fn a_wait_for_any_signal_gives_up_after_its_timeout() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Listener>()).await.unwrap();
    let begun = env.now();
    let listener = env.client().start::<Listener>("listener", ()).await.unwrap();
    assert_eq!(listener.result().await.unwrap(), "timed out");
    assert_eq!(env.now().saturating_since(begun), minutes(30));
    let history = listener.history().await.unwrap();
    assert_eq!(names(&history), ["RunStarted", "TimerStarted", "TimerFired", "RunCompleted"]);
    let origin = timers(&history).remove(0).origin;
    assert_eq!(origin, Some(Origin::ExternalEvent { name: String::new() }));
}

fn sleepers(worker: Worker) -> Worker {
    worker.workflow::<Sleeper>()
}

fn started(fact: &Fact) -> bool {
    matches!(fact, Fact::TimerStarted(_))
}

#[tokio::test]
async fn a_worker_crash_in_mid_sleep_loses_nothing() {
    let site = Site::open().await;
    let worker = site.work_as("before the deploy", sleepers);
    let sleeper = site.client().start::<Sleeper>("sleeper", days(30)).await.unwrap();
    until(&sleeper, started).await;
    worker.kill().await;
    site.pass(days(30));
    until(&sleeper, |fact| matches!(fact, Fact::TimerFired(_))).await;
    // Any healthy worker goes on, also one with other code.
    let worker = site.work_as("after the deploy", sleepers);
    assert_eq!(sleeper.result().await.unwrap(), days(30));
    worker.kill().await;
}

#[tokio::test]
async fn an_engine_restart_in_mid_sleep_loses_nothing() {
    let mut site = Site::open().await;
    let worker = site.work(sleepers);
    let sleeper = site.client().start::<Sleeper>("sleeper", days(30)).await.unwrap();
    until(&sleeper, started).await;
    worker.kill().await;
    for _ in 0..3 {
        site.reopen().await;
        site.pass(days(7));
    }
    let worker = site.work(sleepers);
    let sleeper = site.client().handle::<Sleeper>("sleeper");
    assert_eq!(count(&sleeper.history().await.unwrap(), "TimerFired"), 0, "not before its time");
    site.pass(days(9));
    assert_eq!(sleeper.result().await.unwrap(), days(30), "the restarts cost no time");
    worker.kill().await;
}

#[tokio::test]
async fn after_downtime_the_backlog_fires_at_once_and_each_timer_once() {
    const RUNS: u64 = 20;
    let mut site = Site::open().await;
    let worker = site.work(sleepers);
    let id = |number: u64| format!("sleeper-{number}");
    for number in 1..=RUNS {
        let start = site.client().start::<Sleeper>(id(number), minutes(number));
        until(&start.await.unwrap(), started).await;
    }
    worker.kill().await;
    site.crash();
    site.pass(hours(1));
    site.reopen().await;
    let worker = site.work(sleepers);
    for number in 1..=RUNS {
        let sleeper = site.client().handle::<Sleeper>(id(number));
        assert_eq!(sleeper.result().await.unwrap(), hours(1), "late, and without further waiting");
        let history = sleeper.history().await.unwrap();
        assert_eq!(count(&history, "TimerFired"), 1);
        assert_eq!(timers(&history).len(), 1);
    }
    worker.kill().await;
}

#[derive(Default)]
struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        match ctx.receive(Self::PAID).timeout(minutes(30)).await? {
            Outcome::InTime(by) => Ok(format!("paid by {by}")),
            Outcome::TimedOut => {
                // A signal that came too late for the wait is not lost: the next wait takes it.
                let late = ctx.receive(Self::PAID).timeout(seconds(1)).await?;
                Ok(late.ok().map_or("timed out".into(), |by| format!("late: {by}")))
            }
        }
    }

    #[signal]
    fn paid(by: String);
}

fn orders(worker: Worker) -> Worker {
    worker.workflow::<Order>()
}

/// There is no worker while both arrive, so that one task sees both: history has decided which was
/// first.
#[tokio::test]
async fn signal_or_timeout_is_decided_by_the_order_in_history() {
    for signal_first in [true, false] {
        let site = Site::open().await;
        let worker = site.work(orders);
        let order = site.client().start::<Order>("order", ()).await.unwrap();
        until(&order, started).await;
        worker.kill().await;
        let fired = |fact: &Fact| matches!(fact, Fact::TimerFired(_));
        if signal_first {
            order.signal(Order::PAID, "Ann").await.unwrap();
            site.pass(minutes(30));
            until(&order, fired).await;
        } else {
            site.pass(minutes(30));
            until(&order, fired).await;
            order.signal(Order::PAID, "Ann").await.unwrap();
        }
        let worker = site.work(orders);
        let expected = if signal_first { "paid by Ann" } else { "late: Ann" };
        assert_eq!(order.result().await.unwrap(), expected);
        replay_history::<Order>(order.history().await.unwrap()).unwrap();
        worker.kill().await;
    }
}
