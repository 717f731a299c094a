//! Children that cannot be asked for: the task fails with a reason that names them, the run stays as
//! it was, and better code goes on with it.

use std::sync::atomic::{AtomicBool, Ordering};

use abide::{Client, WorkflowHandle, client::TaskFailureCause, prelude::*};
use abide_core::event::Fact;
use abide_embedded::{Embedded, Limits};
use abide_sdk_testing::TestEnvironment;

use super::{Kid, PAGE};
use crate::site::until;

/// The code that asks for impossible children was replaced by better code.
static FIXED: AtomicBool = AtomicBool::new(false);

/// Asks for children that cannot be.
#[derive(Default)]
struct Careless;

#[workflow]
impl Careless {
    #[run]
    async fn run(ctx: &Context<Self>, plan: String) -> abide::Result<u32> {
        let seven = || "7".to_owned();
        match plan.as_str() {
            "no id" => ctx.child::<Kid>("", seven()).await,
            "long id" => ctx.child::<Kid>("k".repeat(1001), seven()).await,
            "no queue" => ctx.child::<Kid>("kid", seven()).queue("").await,
            "no time" => ctx.child::<Kid>("kid", seven()).run_timeout(seconds(0)).await,
            "no such day" => ctx.child::<Kid>("kid", seven()).cron("0 0 30 2 *").await,
            _ => {
                let count = if FIXED.load(Ordering::SeqCst) { 3 } else { 4 };
                let kids = (0..count).map(|n| ctx.child::<Kid>(format!("kid-{n}"), n.to_string()));
                let sums: abide::Result<Vec<u32>> = join_all(kids).await.into_iter().collect();
                Ok(sums?.into_iter().sum())
            }
        }
    }
}

async fn start(client: &Client, plan: &str) -> WorkflowHandle<Careless> {
    client.start::<Careless>(plan, plan.to_owned()).await.unwrap()
}

/// Waits until the task has failed, and tells why.
async fn trouble(run: &WorkflowHandle<Careless>) -> String {
    until(run, |fact| matches!(fact, Fact::TaskFailed(_))).await;
    let trouble = run.describe().await.unwrap().trouble.unwrap();
    assert_eq!(trouble.cause, TaskFailureCause::BadCommand);
    trouble.failure.message().to_owned()
}

#[tokio::test]
async fn a_child_that_cannot_be_is_named() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Careless>().workflow::<Kid>()).await.unwrap();
    for (plan, told) in [
        ("no id", "command 1: workflow id is empty"),
        ("long id", "command 1: workflow id has 1001 bytes, the limit is 1000"),
        ("no queue", "command 1: queue is empty"),
        ("no time", "command 1: run timeout is zero; leave it out for no limit"),
        ("no such day", "command 1: cron \"0 0 30 2 *\" never matches a time"),
    ] {
        let run = start(&env.client(), plan).await;
        assert_eq!(trouble(&run).await, told);
        PAGE.check(
            "a child without an id, or another that cannot be",
            &run.history().await.unwrap(),
        );
        run.terminate("enough").await.unwrap();
    }
}

#[tokio::test]
async fn more_children_than_a_run_may_have() {
    let limits = Limits { pending_children: 3, ..Limits::default() };
    let engine = Embedded::builder().limits(limits).in_memory().await;
    let worker = |build: &str| {
        let worker = engine.worker().build_id(build).workflow::<Careless>().workflow::<Kid>();
        tokio::spawn(worker.run())
    };
    let old = worker("old");
    let run = start(&engine.client(), "many").await;
    let told = "command 4: pending children and requests would exceed the limit of 3";
    assert_eq!(trouble(&run).await, told);
    PAGE.check("more pending children than a run may have", &run.history().await.unwrap());

    old.abort();
    FIXED.store(true, Ordering::SeqCst);
    worker("new");
    run.repair().await.unwrap();
    assert_eq!(run.result().await.unwrap(), 3);
}

/// Adds up the results of many concurrent children.
#[derive(Default)]
struct Crowd;

#[workflow]
impl Crowd {
    #[run]
    async fn run(ctx: &Context<Self>, count: u32) -> abide::Result<u32> {
        let kids = (0..count).map(|n| ctx.child::<Kid>(format!("kid-{n}"), "1"));
        let sums: abide::Result<Vec<u32>> = join_all(kids).await.into_iter().collect();
        Ok(sums?.into_iter().sum())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_has_a_thousand_children() {
    let count = 1000;
    let engine = Embedded::in_memory().await;
    let worker = engine.worker().build_id("test").workflow::<Crowd>().workflow::<Kid>();
    worker.spawn();
    let crowd = engine.client().start::<Crowd>("crowd", count).await.unwrap();
    assert_eq!(crowd.result().await.unwrap(), count);
    let history = crowd.history().await.unwrap();
    assert_eq!(crate::site::count(&history, "ChildCompleted"), 1000);
}
