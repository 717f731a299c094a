//! Children, cancel and terminate.

use abide::{ClientError, Context, Error};
use abide_core::event::Fact;
use abide_embedded::Embedded;
use abide_sdk::workflow;

use crate::world::{Running, seconds, until};

#[derive(Default)]
struct Parent;

#[workflow]
impl Parent {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let child = ctx.child::<Child>("the-child", 20).start().await?;
        child.signal(Child::ADD, 1).await?;
        let sum = child.result().await?;
        Ok(format!("the child says {sum}"))
    }
}

#[derive(Default)]
struct Child;

#[workflow]
impl Child {
    #[run]
    async fn run(ctx: &Context<Self>, begin: u32) -> abide::Result<u32> {
        let more: u32 = ctx.receive(Self::ADD).await?;
        Ok(begin + more)
    }

    #[signal]
    fn add(more: u32);
}

/// Cleans up when it is cancelled.
#[derive(Default)]
struct Stoppable {
    cleaned: bool,
}

#[workflow]
impl Stoppable {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        let slept = ctx.sleep(seconds(3600)).await;
        if let Err(Error::Cancelled) = slept {
            ctx.write(|state| state.cleaned = true);
        }
        slept
    }

    #[query]
    fn cleaned(&self) -> bool {
        self.cleaned
    }
}

#[tokio::test]
async fn a_parent_signals_its_child_and_has_its_result() {
    let engine = Embedded::in_memory().await;
    let running = Running::start(engine.worker().workflow::<Parent>().workflow::<Child>());
    let parent = engine.client().start::<Parent>("parent", ()).await.unwrap();
    assert_eq!(parent.result().await.unwrap(), "the child says 21");
    running.stop().await;
}

#[tokio::test]
async fn a_cancelled_run_cleans_up_and_is_cancelled() {
    let engine = Embedded::in_memory().await;
    let running = Running::start(engine.worker().workflow::<Stoppable>());
    let handle = engine.client().start::<Stoppable>("stoppable", ()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    handle.cancel().reason("no time").await.unwrap();
    let error = handle.result().await.unwrap_err();
    assert!(matches!(error, ClientError::RunCancelled(_)), "{error}");
    assert!(handle.query(Stoppable::CLEANED, ()).await.unwrap());
    running.stop().await;
}

#[tokio::test]
async fn a_terminated_run_is_not_asked() {
    let engine = Embedded::in_memory().await;
    let running = Running::start(engine.worker().workflow::<Stoppable>());
    let handle = engine.client().start::<Stoppable>("stoppable", ()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    handle.terminate("enough").await.unwrap();
    let error = handle.result().await.unwrap_err();
    assert_eq!(error, ClientError::RunTerminated("enough".into()));
    assert!(!handle.query(Stoppable::CLEANED, ()).await.unwrap());
    running.stop().await;
}
