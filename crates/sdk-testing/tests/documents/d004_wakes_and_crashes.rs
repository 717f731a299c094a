//! Wakes that come at the worst moment: while a task is in flight and the engine then crashes, while
//! the run is paused, many at the same instant, far timers that are suddenly near.

use abide::{Worker, client::Liveness, event::Fact, prelude::*};
use abide_sdk_testing::replay_history;

use crate::site::{Hold, Site, count, names, timers, until};

fn started(fact: &Fact) -> bool {
    matches!(fact, Fact::TimerStarted(_))
}

fn fired(fact: &Fact) -> bool {
    matches!(fact, Fact::TimerFired(_))
}

static FIRST_TASK: Hold = Hold::new();

/// Stands in the middle of its first task until the test lets it go on.
#[derive(Default)]
struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<String>> {
        FIRST_TASK.pass();
        let first = ctx.receive(Self::PAID).await?;
        Ok(vec![first, ctx.receive(Self::PAID).await?])
    }

    #[signal]
    fn paid(by: String);
}

/// The signals were acknowledged, so they are there when the engine comes back, in their order.
#[tokio::test]
async fn signals_during_a_task_survive_a_crash() {
    let mut site = Site::open().await;
    let worker = site.work(|worker| worker.workflow::<Order>());
    let order = site.client().start::<Order>("order", ()).await.unwrap();
    FIRST_TASK.entered().await;
    order.signal(Order::PAID, "Ann").await.unwrap();
    order.signal(Order::PAID, "Bob").await.unwrap();
    worker.kill().await;
    site.crash();
    FIRST_TASK.open();
    site.reopen().await;
    let worker = site.work(|worker| worker.workflow::<Order>());
    let order = site.client().handle::<Order>("order");
    assert_eq!(order.result().await.unwrap(), ["Ann", "Bob"]);
    assert_eq!(count(&order.history().await.unwrap(), "SignalReceived"), 2);
    worker.kill().await;
}

static LATER_TASK: Hold = Hold::new();

/// Sleeps, and stands in the middle of a later task.
#[derive(Default)]
struct Sleeper;

#[workflow]
impl Sleeper {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(seconds(5)).await
    }

    #[signal]
    fn look(&mut self) {
        LATER_TASK.pass();
    }
}

/// The move and the firing were both taken while a worker had the task, which never ended.
#[tokio::test]
async fn a_move_and_a_firing_during_a_task_survive_a_crash() {
    let mut site = Site::open().await;
    let begun = site.now();
    let worker = site.work(|worker| worker.workflow::<Sleeper>());
    let sleeper = site.client().start::<Sleeper>("sleeper", ()).await.unwrap();
    until(&sleeper, started).await;
    sleeper.signal(Sleeper::LOOK, ()).await.unwrap();
    LATER_TASK.entered().await;
    sleeper.reschedule_timer("timer-1", begun + seconds(8)).await.unwrap();
    let rows = site.log_rows("sleeper").await;
    site.pass(seconds(8));
    while site.log_rows("sleeper").await == rows {
        tokio::task::yield_now().await;
    }
    worker.kill().await;
    site.crash();
    LATER_TASK.open();
    site.reopen().await;
    let worker = site.work(|worker| worker.workflow::<Sleeper>());
    let sleeper = site.client().handle::<Sleeper>("sleeper");
    sleeper.result().await.unwrap();
    let history = sleeper.history().await.unwrap();
    let expected = ["SignalReceived", "TimerRescheduled", "TimerFired", "RunCompleted"];
    assert_eq!(names(&history)[2..], expected);
    replay_history::<Sleeper>(history).unwrap();
    worker.kill().await;
}

/// Many sleeps that end at the same instant.
#[derive(Default)]
struct Crowd;

#[workflow]
impl Crowd {
    #[run]
    async fn run(ctx: &Context<Self>, size: u64) -> abide::Result<usize> {
        let slept = join_all((0..size).map(|_| ctx.sleep(hours(1)))).await;
        slept.into_iter().collect::<abide::Result<Vec<_>>>().map(|slept| slept.len())
    }
}

#[tokio::test]
async fn timers_that_are_due_at_the_same_instant_each_fire_once() {
    const SIZE: usize = 500;
    let mut site = Site::open().await;
    let crowds = |worker: Worker| worker.workflow::<Crowd>();
    let worker = site.work(crowds);
    let crowd = site.client().start::<Crowd>("crowd", SIZE as u64).await.unwrap();
    until(&crowd, started).await;
    worker.kill().await;
    site.crash();
    site.pass(hours(2));
    site.reopen().await;
    let worker = site.work(crowds);
    let crowd = site.client().handle::<Crowd>("crowd");
    assert_eq!(crowd.result().await.unwrap(), SIZE);
    let history = crowd.history().await.unwrap();
    assert_eq!((timers(&history).len(), count(&history, "TimerFired")), (SIZE, SIZE));
    worker.kill().await;
}

/// While a run is paused its timers fire into history, but its code does not run.
#[tokio::test]
async fn a_timer_that_fires_in_a_paused_run_wakes_it_when_the_pause_ends() {
    let mut site = Site::open().await;
    let crowds = |worker: Worker| worker.workflow::<Crowd>();
    let worker = site.work(crowds);
    let crowd = site.client().start::<Crowd>("crowd", 1).await.unwrap();
    until(&crowd, started).await;
    crowd.pause("holidays").await.unwrap();
    site.pass(hours(1));
    until(&crowd, fired).await;
    assert_eq!(crowd.describe().await.unwrap().liveness, Liveness::Paused);
    worker.kill().await;
    site.reopen().await;
    let worker = site.work(crowds);
    let crowd = site.client().handle::<Crowd>("crowd");
    assert_eq!(count(&crowd.history().await.unwrap(), "RunCompleted"), 0);
    crowd.unpause("back again").await.unwrap();
    assert_eq!(crowd.result().await.unwrap(), 1);
    worker.kill().await;
}

/// The engine holds only the near future in memory: a far timer that is moved near must come into it,
/// and a near one that is moved far must leave it.
#[tokio::test]
async fn timers_that_are_moved_between_near_and_far_fire_at_their_time() {
    let site = Site::open().await;
    let begun = site.now();
    let worker = site.work(|worker| worker.workflow::<Nap>());
    let client = site.client();
    let far = client.start::<Nap>("far", days(30)).await.unwrap();
    let near = client.start::<Nap>("near", seconds(10)).await.unwrap();
    until(&far, started).await;
    until(&near, started).await;
    far.reschedule_timer("timer-1", begun + seconds(20)).await.unwrap();
    near.reschedule_timer("timer-1", begun + days(60)).await.unwrap();
    site.pass(seconds(20));
    assert_eq!(far.result().await.unwrap(), begun + seconds(20));
    site.pass(days(59));
    assert_eq!(count(&near.history().await.unwrap(), "TimerFired"), 0);
    site.pass(days(1));
    assert_eq!(near.result().await.unwrap(), site.now());
    worker.kill().await;
}

#[derive(Default)]
struct Nap;

#[workflow]
impl Nap {
    #[run]
    async fn run(ctx: &Context<Self>, time: std::time::Duration) -> abide::Result<Timestamp> {
        ctx.sleep(time).await?;
        Ok(ctx.now())
    }
}
