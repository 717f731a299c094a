//! Optional timers: how histories that lack the timers of waits without deadline are replayed. The last
//! five of the document's thirteen cases and more, through the engine: a worker of an older SDK begins
//! the run where the document has an older history, and today's takes it over.

use abide::{Timestamp, Worker, list::RunStatus, prelude::*};
use abide_core::event::{Fact, Origin, TimerSpec};
use abide_sdk_testing::TestEnvironment;

use crate::{
    foreign::{OldWorker, activity, child, timer},
    site::{Site, count, timers, until},
};

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
                ctx.receive(Self::FIRST).await?;
                ctx.activity(act_a, ()).await
            }
            "child" => {
                ctx.receive(Self::FIRST).await?;
                ctx.child::<Child>("child-1", ()).await
            }
            "sleep" => {
                let payload = ctx.receive(Self::FIRST).await?;
                ctx.sleep(seconds(5)).await?;
                Ok(payload)
            }
            "two activities" => {
                ctx.receive(Self::FIRST).await?;
                let one = ctx.activity(act_a, ()).await?;
                ctx.receive(Self::SECOND).await?;
                Ok(one + &ctx.activity(act_b, ()).await?)
            }
            "two children" => {
                let one = async {
                    ctx.receive(Self::FIRST).await?;
                    ctx.child::<Child>("child-of-first", ()).await
                };
                let two = async {
                    ctx.receive(Self::SECOND).await?;
                    ctx.child::<Child>("child-of-second", ()).await
                };
                let (one, two) = join!(one, two);
                Ok(format!("{} {}", one?, two?))
            }
            "far sleep" => {
                ctx.sleep_until(Timestamp::NEVER).await?;
                Ok("slept".into())
            }
            _ => ctx.receive(Self::FIRST).await,
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

async fn old_run(site: &Site, then: &str) -> WaitsHandle {
    let start = site.client().start::<Waits>("waits", then.to_owned());
    start.with_signal(Waits::FIRST, "payload").await.unwrap()
}

/// The run completed, and no timer of a wait without deadline ever came into its history.
async fn completed(handle: &WaitsHandle, expected: &str) {
    assert_eq!(handle.result().await.unwrap(), expected);
    let history = handle.history().await.unwrap();
    assert!(timers(&history).iter().all(|timer| !timer.optional()), "none leaks");
    assert_eq!((count(&history, "RunCompleted"), count(&history, "TaskFailed")), (1, 0));
}

#[tokio::test]
async fn timer_origin_09_a_recorded_optional_timer_is_matched() {
    let env = TestEnvironment::new().await;
    env.worker(today).await.unwrap();
    let waits = env.client().start::<Waits>("waits", "nothing").await.unwrap();
    env.skip(days(1)).await;
    waits.signal(Waits::FIRST, "payload").await.unwrap();
    assert_eq!(waits.result().await.unwrap(), "payload");
    let history = waits.history().await.unwrap();
    assert_eq!((timers(&history).len(), count(&history, "TimerFired")), (1, 0));
    assert_eq!(count(&history, "TaskFailed"), 0);
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
        let asked = timer("timer-1", site.now() + seconds(5), origin.clone());
        OldWorker::connect(site.engine()).task([asked]).await;
        let recorded = timers(&handle.history().await.unwrap()).remove(0);
        assert_eq!(recorded.origin, origin, "the engine does not make one up");
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
    handle.signal(Waits::SECOND, "payload").await.unwrap();
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
    let start = site.client().start::<Waits>("waits", "two children");
    let handle = start.await.unwrap();
    let mut old = OldWorker::connect(site.engine());
    old.task([]).await;
    // The second wait ends first.
    handle.signal(Waits::SECOND, "2").await.unwrap();
    old.task([child("child-of-second", "Child")]).await;
    drop(old);
    let worker = site.work(today);
    until(&handle, |fact| matches!(fact, Fact::ChildCompleted(_))).await;
    handle.signal(Waits::FIRST, "1").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "child-of-first child-of-second");
    let history = handle.history().await.unwrap();
    assert_eq!(count(&history, "TaskFailed"), 0);
    let optional: Vec<_> = timers(&history).into_iter().filter(TimerSpec::optional).collect();
    assert_eq!(optional.len(), 1, "of the wait that was open when today's code came");
    assert_eq!(optional[0].origin, Some(Origin::ExternalEvent { name: "first".into() }));
    worker.kill().await;
}

/// Nothing in the old history conflicts with the timer, so the first task of today's code writes it.
#[tokio::test]
async fn an_optional_timer_that_nothing_drops_leaks_to_history_and_is_matched_from_then_on() {
    let site = Site::open().await;
    let start = site.client().start::<Waits>("waits", "nothing");
    let handle = start.await.unwrap();
    OldWorker::connect(site.engine()).task([]).await;
    assert!(timers(&handle.history().await.unwrap()).is_empty());
    let worker = site.work(today);
    for looked in 1..=3 {
        handle.signal(Waits::LOOK, ()).await.unwrap();
        assert_eq!(handle.query(Waits::LOOKED, ()).await.unwrap(), looked);
        let timers = timers(&handle.history().await.unwrap());
        assert_eq!(timers.len(), 1, "written once");
        assert!(timers[0].optional());
    }
    handle.signal(Waits::FIRST, "payload").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "payload");
    assert_eq!(count(&handle.history().await.unwrap(), "TaskFailed"), 0);
    worker.kill().await;
}

/// Only optional timers may be absent: any other step that history lacks blocks the run.
#[tokio::test]
async fn a_far_sleep_that_an_old_history_lacks_blocks_the_run() {
    let site = Site::open().await;
    let start = site.client().start::<Waits>("waits", "far sleep");
    let handle = start.await.unwrap();
    OldWorker::connect(site.engine()).task([]).await;
    let worker = site.work(today);
    handle.signal(Waits::LOOK, ()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TaskFailed(_))).await;
    let described = handle.describe().await.unwrap();
    assert_eq!(described.status, RunStatus::ReplayBlocked);
    let blocked = described.trouble.unwrap().blocked.unwrap();
    assert_eq!(
        (blocked.expected.as_str(), blocked.recorded.len()),
        ("TimerStarted timer-1, sleep", 0)
    );
    worker.kill().await;
}
