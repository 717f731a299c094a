//! Workers that cannot read a history at first, or whose cached state is lost by a user's panic.

use abide::{Context, Worker};
use abide_core::{event::Fact, operation::CallError};
use abide_embedded::Embedded;
use abide_sdk::workflow;

use crate::{
    unsteady::Unsteady,
    world::{Running, manual_clock, until},
};

#[derive(Default)]
struct Patient;

#[workflow]
impl Patient {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        ctx.receive(Self::GO).await
    }

    #[signal]
    fn go(word: String);
}

/// Panics on drop, if asked to.
struct Fragile(bool);

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(!self.0, "fragile");
    }
}

#[workflow]
impl Fragile {
    #[init]
    fn new(breaks: &bool) -> Self {
        Self(*breaks)
    }

    #[run]
    async fn run(ctx: &Context<Self>, _breaks: bool) -> abide::Result<()> {
        ctx.receive(Self::GO).await
    }

    #[signal]
    fn go();
}

/// An engine whose clock stands still: an unanswered task never times out.
async fn timeless() -> Embedded {
    Embedded::builder().clock(manual_clock()).in_memory().await
}

#[tokio::test]
async fn a_history_that_cannot_be_read_at_once_is_asked_for_again() {
    let engine = timeless().await;
    let unsteady = Unsteady::new(&engine);
    let worker = Worker::new(&unsteady.client()).workflow::<Patient>().max_cached_runs(0);
    let running = Running::start(worker);
    let handle = engine.client().start::<Patient>("patient", ()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TaskCompleted(_))).await;
    unsteady.unread.lock().unwrap().extend([CallError::Reset, CallError::Overloaded]);
    handle.signal(Patient::GO, "on").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "on");
    assert!(unsteady.unread.lock().unwrap().is_empty());
    running.stop().await;
}

#[tokio::test]
async fn a_task_whose_history_is_refused_fails_aloud() {
    let engine = timeless().await;
    let unsteady = Unsteady::new(&engine);
    let worker = Worker::new(&unsteady.client()).workflow::<Patient>().max_cached_runs(0);
    let running = Running::start(worker);
    let handle = engine.client().start::<Patient>("patient", ()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TaskCompleted(_))).await;
    let run = handle.run_id().unwrap();
    let torn = CallError::Unreadable { run, reason: "a page is torn".into() };
    unsteady.unread.lock().unwrap().push_back(torn);
    handle.signal(Patient::GO, "on").await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TaskFailed(_))).await;
    let trouble = handle.describe().await.unwrap().trouble.unwrap();
    assert!(trouble.failure.message().contains("a page is torn"), "{trouble:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_value_that_panics_when_it_is_dropped_takes_no_other_run_with_it() {
    let engine = timeless().await;
    let worker = engine.worker().workflow::<Fragile>().workflow_threads(1).max_cached_runs(1);
    let running = Running::start(worker);
    let client = engine.client();
    let fragile = client.start::<Fragile>("fragile", true).await.unwrap();
    until(&fragile, |fact| matches!(fact, Fact::TaskCompleted(_))).await;
    // Evicts the first run from the cache.
    let sound = client.start::<Fragile>("sound", false).await.unwrap();
    until(&sound, |fact| matches!(fact, Fact::TaskCompleted(_))).await;
    sound.signal(Fragile::GO, ()).await.unwrap();
    sound.result().await.unwrap();
    running.stop().await;
}
