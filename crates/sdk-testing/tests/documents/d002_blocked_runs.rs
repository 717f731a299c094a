//! Code that does not fit a run's history blocks the run: it stays open, says why, is not tried in a
//! loop, and goes on with code that fits.

use std::sync::atomic::{AtomicU32, Ordering};

use abide::{
    Client, ClientError, Workflow, WorkflowHandle,
    client::{Blocked, BlockedReason, Liveness, ResumeSource, Untyped},
    list::{RunFilter, RunStatus},
    prelude::*,
};
use abide_core::event::Fact;

use crate::site::{Site, count, until, until_count};

#[activity]
async fn notify() {}

/// No worker runs it here.
#[derive(Default)]
struct Clerk;

#[workflow]
impl Clerk {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(minutes(1)).await
    }
}

/// Versions of one workflow that differ in the step that they begin with.
macro_rules! approval {
    ($($(#[$doc:meta])* $name:ident: |$ctx:ident| $wait:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Default)]
        struct $name {
            ready: bool,
            looks: u32,
        }

        #[workflow(name = "approval")]
        impl $name {
            #[run]
            async fn run($ctx: &Context<Self>) -> abide::Result<String> {
                $wait.map(|_| "approved".into())
            }

            #[signal]
            fn approve(&mut self) {
                self.ready = true;
            }

            #[signal]
            fn look(&mut self) {
                self.looks += 1;
            }

            #[signal]
            fn done();

            #[update]
            fn amend(&mut self) {
                self.looks += 1;
            }

            #[query]
            fn ready(&self) -> bool {
                self.ready
            }
        }
    )+};
}

approval! {
    Approval: |ctx| ctx.wait_until(condition!("approval.ready", |it| it.ready)).await;
    Unkeyed: |ctx| ctx.wait_until(condition!(|it| it.ready)).await;
    OtherKey: |ctx| ctx.wait_until(condition!("approval.done", |it| it.ready)).await;
    /// The same key, and another predicate.
    OtherPredicate: |ctx| ctx.wait_until(condition!("approval.ready", |it| it.ready && it.looks < 9)).await;
    /// Only written in another way.
    Reformatted: |ctx| ctx.wait_until(condition!(
        "approval.ready",
        // As it was.
        |it| {
            it . ready
        },
    )).await;
    WithDeadline: |ctx| {
        ctx.wait_until(condition!("approval.ready", |it| it.ready)).timeout(minutes(5)).await
    };
    Sleeps: |ctx| ctx.sleep(minutes(5)).await;
    Acts: |ctx| ctx.activity(notify, ()).await;
    HasChild: |ctx| ctx.child::<Clerk>("child", ()).await;
    Receives: |ctx| ctx.receive(Self::DONE).await;
    HasSideEffect: |ctx| {
        ctx.side_effect(|| 7)?;
        ctx.receive(Self::DONE).await
    };
    IsPatched: |ctx| {
        ctx.patched("better");
        ctx.receive(Self::DONE).await
    };
    ContinuesAsNew: |ctx| Err::<(), _>(ctx.continue_as_new(()));
    SleepsAndActs: |ctx| {
        let (slept, acted) = join!(ctx.sleep(minutes(5)), ctx.activity(notify, ()));
        slept.and(acted)
    };
    SleepsAndReceives: |ctx| {
        let (slept, received) = join!(ctx.sleep(minutes(5)), ctx.receive(Self::DONE));
        slept.and(received)
    };
}

/// Begins a run with the code of `W`, up to where it waits.
async fn begin<W: Workflow>(site: &Site) -> WorkflowHandle<Untyped> {
    let worker = site.work_as("as it was", |worker| worker.workflow::<W>());
    let handle = site.client().start_untyped("approval", "approval-1", Vec::new()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TaskCompleted(_))).await;
    worker.kill().await;
    handle
}

/// Begins a run with the code of `Old`, lets a worker with the code of `New` take it, and gives what
/// has blocked it.
async fn blocked<Old: Workflow, New: Workflow>() -> Blocked {
    let site = Site::open().await;
    let handle = begin::<Old>(&site).await;
    let worker = site.work_as("changed", |worker| worker.workflow::<New>());
    handle.signal_untyped("look", Vec::new()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TaskFailed(_))).await;
    // An event that comes meanwhile, such as the start of a child, is reason for another try.
    let description = loop {
        let description = handle.describe().await.unwrap();
        if description.status == RunStatus::ReplayBlocked {
            break description;
        }
        tokio::task::yield_now().await;
    };
    let trouble = description.trouble.unwrap();
    assert_eq!(description.liveness, Liveness::ReplayBlocked);
    assert!(description.resume_sources.contains(&ResumeSource::Operator));
    let blocked = trouble.blocked.unwrap();
    // A query and an update are told the same.
    let error = ClientError::Blocked(Box::new(blocked.clone()));
    assert_eq!(handle.query_untyped("ready", Vec::new()).await, Err(error.clone()));
    assert_eq!(handle.update_untyped("change", Vec::new()).await, Err(error));
    worker.kill().await;
    blocked
}

#[tokio::test]
async fn another_key_blocks_the_run() {
    let blocked = blocked::<Approval, OtherKey>().await;
    assert_eq!(blocked.reason, BlockedReason::ConditionDefinition);
    assert_eq!(blocked.recorded_key.as_deref(), Some("approval.ready"));
    assert_eq!(blocked.expected_key.as_deref(), Some("approval.done"));
    assert_eq!(blocked.recorded_fingerprint, blocked.expected_fingerprint);
    assert_eq!(blocked.expected, "WaitOpened condition-1, approval.done");
    assert_eq!(blocked.recorded, ["WaitOpened condition-1, approval.ready"]);
}

#[tokio::test]
async fn a_key_where_there_was_none_blocks_the_run() {
    let blocked = blocked::<Unkeyed, Approval>().await;
    assert_eq!(blocked.reason, BlockedReason::ConditionDefinition);
    assert_eq!(
        (blocked.recorded_key, blocked.expected_key.as_deref()),
        (None, Some("approval.ready"))
    );
}

#[tokio::test]
async fn the_same_key_with_another_predicate_blocks_the_run() {
    let blocked = blocked::<Approval, OtherPredicate>().await;
    assert_eq!(blocked.reason, BlockedReason::ConditionDefinition);
    assert_eq!(blocked.recorded_key, blocked.expected_key);
    assert!(blocked.recorded_fingerprint.is_some() && blocked.expected_fingerprint.is_some());
    assert_ne!(blocked.recorded_fingerprint, blocked.expected_fingerprint);
}

#[tokio::test]
async fn another_layout_of_the_same_predicate_goes_on() {
    let site = Site::open().await;
    let handle = begin::<Approval>(&site).await;
    let worker = site.work_as("reformatted", |worker| worker.workflow::<Reformatted>());
    handle.signal_untyped("approve", Vec::new()).await.unwrap();
    handle.result_untyped().await.unwrap();
    assert_eq!(count(&handle.history().await.unwrap(), "TaskFailed"), 0);
    worker.kill().await;
}

#[tokio::test]
async fn another_kind_of_step_blocks_the_run_and_both_are_told() {
    let condition = "WaitOpened condition-1, approval.ready";
    let sleep = "TimerStarted timer-1, sleep";
    let optional = "TimerStarted signal-1, signal without deadline, done";
    let activity = "ActivityScheduled activity-1, notify";
    let child = "ChildInitiated default, child, Clerk";
    let side_effect = "MarkerRecorded side effect, side-effect-1";
    let patch = "MarkerRecorded version, better";
    let check = |blocked: Blocked, recorded: &str, expected: &str| {
        assert_eq!(blocked.reason, BlockedReason::HistoryShape, "{blocked:?}");
        assert_eq!(blocked.recorded.first().map_or("", String::as_str), recorded);
        assert!(blocked.expected.starts_with(expected), "{blocked:?}");
    };
    // What history has against each kind of step that code may take now.
    check(blocked::<Sleeps, Approval>().await, sleep, condition);
    check(blocked::<Approval, Sleeps>().await, condition, sleep);
    check(blocked::<Approval, Acts>().await, condition, activity);
    check(blocked::<Approval, HasChild>().await, condition, child);
    check(blocked::<Approval, Receives>().await, condition, optional);
    check(blocked::<Approval, HasSideEffect>().await, condition, side_effect);
    check(blocked::<Approval, ContinuesAsNew>().await, condition, "RunContinuedAsNew");
    // And each kind of step against code that sleeps now.
    check(blocked::<Acts, Sleeps>().await, activity, sleep);
    check(blocked::<HasChild, Sleeps>().await, child, sleep);
    check(blocked::<Receives, Sleeps>().await, optional, sleep);
    check(blocked::<HasSideEffect, Receives>().await, side_effect, optional);
    check(blocked::<IsPatched, Receives>().await, patch, optional);
    // Our own histories have every wait for a signal, so nothing is optional in them.
    check(blocked::<Acts, Receives>().await, activity, optional);
    // Each leaf of what is done at the same time is checked on its own.
    check(blocked::<SleepsAndActs, SleepsAndReceives>().await, activity, optional);
    // A deadline that was not there is a step too.
    let deadline = "TimerStarted condition-1, condition, approval.ready";
    check(blocked::<Approval, WithDeadline>().await, "", deadline);
}

#[tokio::test]
async fn a_blocked_run_goes_on_when_another_build_with_fitting_code_connects() {
    let site = Site::open().await;
    let handle = begin::<Approval>(&site).await;
    let wrong = site.work_as("wrong", |worker| worker.workflow::<OtherKey>());
    handle.signal_untyped("approve", Vec::new()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TaskFailed(_))).await;
    let filter = RunFilter::new().status(RunStatus::ReplayBlocked);
    assert_eq!(site.client().count_runs(filter.clone()).await.unwrap(), 1, "it can be found");
    // Both are there, as in a rolling deploy.
    let right = site.work_as("right", |worker| worker.workflow::<Approval>());
    handle.result_untyped().await.unwrap();
    assert_eq!(site.client().count_runs(filter).await.unwrap(), 0);
    wrong.kill().await;
    right.kill().await;
}

/// The same build comes back with other code, for instance because a setting was restored.
#[tokio::test]
async fn a_blocked_run_goes_on_with_the_same_build_when_it_is_repaired() {
    let site = Site::open().await;
    let handle = begin::<Approval>(&site).await;
    let worker = site.work_as("build 7", |worker| worker.workflow::<OtherKey>());
    handle.signal_untyped("approve", Vec::new()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TaskFailed(_))).await;
    worker.kill().await;
    let worker = site.work_as("build 7", |worker| worker.workflow::<Approval>());
    let told = handle.query_untyped("ready", Vec::new()).await;
    assert!(matches!(told, Err(ClientError::Blocked(_))), "{told:?}");
    handle.repair().await.unwrap();
    handle.result_untyped().await.unwrap();
    worker.kill().await;
}

/// Who would rather wait than be told that the run is blocked gets the outcome of the repaired code.
#[tokio::test]
async fn an_update_may_wait_until_a_blocked_run_is_repaired() {
    let site = Site::open().await;
    let handle = begin::<Approval>(&site).await;
    let wrong = site.work_as("wrong", |worker| worker.workflow::<OtherKey>());
    handle.signal_untyped("look", Vec::new()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TaskFailed(_))).await;
    let told = handle.update_untyped("amend", Vec::new()).id("u").await;
    assert!(matches!(told, Err(ClientError::Blocked(_))), "{told:?}");
    let update = handle.update_untyped("amend", Vec::new()).id("u").wait_while_blocked();
    let update = tokio::spawn(update.into_future());
    while !handle.describe().await.unwrap().updates.contains(&"u".into()) {
        tokio::task::yield_now().await;
    }
    let right = site.work_as("right", |worker| worker.workflow::<Approval>());
    update.await.unwrap().unwrap();
    wrong.kill().await;
    right.kill().await;
}

#[tokio::test]
async fn a_blocked_run_is_still_blocked_after_a_restart() {
    let mut site = Site::open().await;
    let handle = begin::<Approval>(&site).await;
    let worker = site.work_as("wrong", |worker| worker.workflow::<OtherKey>());
    handle.signal_untyped("approve", Vec::new()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TaskFailed(_))).await;
    let before = handle.describe().await.unwrap().trouble;
    worker.kill().await;
    site.reopen().await;
    let handle = reopened(&site.client());
    assert_eq!(handle.describe().await.unwrap().trouble, before);
    let worker = site.work_as("right", |worker| worker.workflow::<Approval>());
    handle.result_untyped().await.unwrap();
    worker.kill().await;
}

fn reopened(client: &Client) -> WorkflowHandle<Untyped> {
    client.handle_untyped("approval-1")
}

static TRIED: AtomicU32 = AtomicU32::new(0);

/// Counts how often its code is run from the top.
#[derive(Default)]
struct Counting;

#[workflow(name = "approval")]
impl Counting {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        TRIED.fetch_add(1, Ordering::SeqCst);
        ctx.sleep(minutes(5)).await?;
        Ok("slept".into())
    }

    #[signal]
    fn look(&mut self) {}
}

/// One attempt per build and length of history, regardless of time and callers.
#[tokio::test]
async fn a_blocked_run_is_not_tried_in_a_loop() {
    let site = Site::open().await;
    let handle = begin::<Approval>(&site).await;
    let worker = site.work_as("wrong", |worker| worker.workflow::<Counting>());
    for tries in 1..=3 {
        handle.signal_untyped("look", Vec::new()).await.unwrap();
        let failed = |fact: &Fact| matches!(fact, Fact::TaskFailed(_));
        until_count(&handle, tries, failed).await;
        for _ in 0..50 {
            site.pass(days(1));
            drop(handle.query_untyped("ready", Vec::new()).await);
            tokio::task::yield_now().await;
        }
        assert_eq!(TRIED.load(Ordering::SeqCst), u32::try_from(tries).unwrap());
        let trouble = handle.describe().await.unwrap().trouble.unwrap();
        assert_eq!(trouble.attempt, 2, "the next attempt at this length of history");
    }
    worker.kill().await;
}
