//! Changes of code while runs are open: a patch and its end.

use abide::{Workflow, client::Handled, client::HistoryEvent, list::RunStatus, prelude::*};
use abide_sdk_testing::{Step, TestEnvironment, TestWorker, steps};

use crate::table::page;

page!("changing-code.md", "versions.rs");

#[activity]
async fn charge() {}

#[activity]
async fn check_fraud() {}

/// Before the change.
#[derive(Default)]
struct Old;

#[workflow(name = "order")]
impl Old {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        ctx.receive(Self::PAID).await?;
        ctx.activity(charge, ()).await?;
        ctx.receive(Self::ARRIVED).await?;
        Ok("old".into())
    }

    #[signal]
    fn paid();

    #[signal]
    fn arrived();
}

/// The first life of the patch: both ways.
#[derive(Default)]
struct Patched;

#[workflow(name = "order")]
impl Patched {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        ctx.receive(Self::PAID).await?;
        let patched = ctx.patched("check-fraud");
        if patched {
            ctx.activity(check_fraud, ()).await?;
        }
        ctx.activity(charge, ()).await?;
        ctx.receive(Self::ARRIVED).await?;
        Ok(if patched { "new" } else { "old" }.into())
    }

    #[signal]
    fn paid();

    #[signal]
    fn arrived();
}

/// The second life: the new way alone.
#[derive(Default)]
struct Deprecated;

#[workflow(name = "order")]
impl Deprecated {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        ctx.receive(Self::PAID).await?;
        ctx.deprecate_patch("check-fraud");
        ctx.activity(check_fraud, ()).await?;
        ctx.activity(charge, ()).await?;
        ctx.receive(Self::ARRIVED).await?;
        Ok("new".into())
    }

    #[signal]
    fn paid();

    #[signal]
    fn arrived();
}

/// The third: as if it had always been so.
#[derive(Default)]
struct Gone;

#[workflow(name = "order")]
impl Gone {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        ctx.receive(Self::PAID).await?;
        ctx.activity(check_fraud, ()).await?;
        ctx.activity(charge, ()).await?;
        ctx.receive(Self::ARRIVED).await?;
        Ok("new".into())
    }

    #[signal]
    fn paid();

    #[signal]
    fn arrived();
}

/// One run, and the worker of today.
struct Story {
    env: TestEnvironment,
    worker: Option<TestWorker>,
    builds: u32,
}

impl Story {
    async fn begin() -> Self {
        Self { env: TestEnvironment::new().await, worker: None, builds: 0 }
    }

    /// A run of this code that has paid and waits for its arrival.
    async fn past<W: Workflow<Arguments = (), Output = String> + Handled>() -> Self {
        let mut story = Self::before::<W>().await;
        story.signal("paid").await;
        story
    }

    /// A run of this code that has not paid.
    async fn before<W: Workflow<Arguments = (), Output = String> + Handled>() -> Self {
        let mut story = Self::begin().await;
        story.deploy::<W>().await;
        story.env.client().start::<W>("order-1", ()).await.unwrap();
        story
    }

    /// Another build takes the place of the one before.
    async fn deploy<W: Workflow>(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.kill().await;
        }
        self.builds += 1;
        let build = format!("build {}", self.builds);
        let set_up = self.env.worker(|worker| {
            let worker = worker.workflow::<W>().activity(charge).activity(check_fraud);
            worker.build_id(build)
        });
        self.worker = Some(set_up.await.unwrap());
    }

    /// Sends a signal and waits until it has been dealt with.
    async fn signal(&mut self, name: &str) {
        let order = self.env.client().handle_untyped("order-1");
        order.signal_untyped(name, Vec::new()).await.unwrap();
        self.env.skip(seconds(1)).await;
    }

    /// Lets the run end with this code, which fits.
    async fn ends_with<W>(mut self) -> (String, Vec<HistoryEvent>)
    where
        W: Workflow<Arguments = (), Output = String> + Handled,
    {
        self.deploy::<W>().await;
        self.signal("arrived").await;
        let order = self.env.client().handle::<W>("order-1");
        let order = order.as_ref();
        (order.result().await.unwrap(), order.history().await.unwrap())
    }

    /// Shows what blocks the run with this code, which does not fit.
    async fn blocks_with<W: Workflow>(&mut self) -> (String, Vec<HistoryEvent>) {
        self.deploy::<W>().await;
        self.signal("arrived").await;
        let order = self.env.client().handle_untyped("order-1");
        let run = order.describe().await.unwrap();
        assert_eq!(run.status, RunStatus::ReplayBlocked);
        (run.trouble.unwrap().failure.message().to_owned(), order.history().await.unwrap())
    }
}

fn patch() -> Step {
    Step::Patch("check-fraud".into())
}

#[tokio::test]
async fn an_old_run_goes_the_old_way() {
    let (result, history) = Story::past::<Old>().await.ends_with::<Patched>().await;
    assert_eq!(result, "old");
    PAGE.check("a run is past the place, then the code is patched", &history);
}

#[tokio::test]
async fn an_old_run_that_comes_to_the_place_follows_the_change() {
    let mut story = Story::before::<Old>().await;
    story.deploy::<Patched>().await;
    story.signal("paid").await;
    let (result, history) = story.ends_with::<Patched>().await;
    assert_eq!(result, "new");
    PAGE.check("a run comes to the place after the code was patched", &history);
}

#[tokio::test]
async fn a_patched_run_fits_the_deprecated_patch() {
    let (result, history) = Story::past::<Patched>().await.ends_with::<Deprecated>().await;
    assert_eq!(result, "new");
    PAGE.check("a run follows the patch, then the patch is deprecated", &history);
}

#[tokio::test]
async fn a_new_run_of_the_deprecated_patch() {
    let (_, history) = Story::past::<Deprecated>().await.ends_with::<Deprecated>().await;
    assert!(steps(&history).contains(&patch()));
    PAGE.check("a run begins with the deprecated patch", &history);
}

#[tokio::test]
async fn a_deprecated_patch_can_go() {
    let (result, history) = Story::past::<Deprecated>().await.ends_with::<Gone>().await;
    assert_eq!(result, "new");
    PAGE.check("a run began with the deprecated patch, then the line is removed", &history);
}

#[tokio::test]
async fn a_deprecated_patch_can_be_taken_back() {
    let (result, history) = Story::past::<Deprecated>().await.ends_with::<Patched>().await;
    assert_eq!(result, "new");
    PAGE.check("a run began with the deprecated patch, then the build before comes back", &history);
}

#[tokio::test]
async fn new_code_without_the_patch_leaves_no_marker() {
    let (_, history) = Story::past::<Gone>().await.ends_with::<Gone>().await;
    assert!(!steps(&history).contains(&patch()));
    PAGE.check("a run begins after the line was removed", &history);
}

#[tokio::test]
async fn a_patched_run_needs_its_line() {
    let mut story = Story::past::<Patched>().await;
    let (message, history) = story.blocks_with::<Gone>().await;
    PAGE.check("a run follows the patch, then the line is removed too early", &history);
    assert!(message.contains("- recorded    11 MarkerRecorded version, check-fraud"), "{message}");
    let advice = "keep `patched` or `deprecate_patch` there until the run has closed";
    assert!(message.contains(advice), "{message}");
    // Which is what to do.
    let (result, history) = story.ends_with::<Deprecated>().await;
    assert_eq!(result, "new");
    PAGE.check("the line comes back, and the blocked run goes on", &history);
}

#[tokio::test]
async fn an_old_run_needs_its_way() {
    let mut story = Story::past::<Old>().await;
    let (message, history) = story.blocks_with::<Deprecated>().await;
    PAGE.check("a run is past the place, then the old way is removed too early", &history);
    assert!(message.contains("+ code           ActivityScheduled activity-1, check_fraud"));
    let advice = "bring it back as `if ctx.patched(\"check-fraud\") { new } else { old }` until the \
                  run has closed";
    assert!(message.contains(advice), "{message}");
    let (result, history) = story.ends_with::<Patched>().await;
    assert_eq!(result, "old");
    PAGE.check("the old way comes back, and the blocked run goes on", &history);
}

#[tokio::test]
async fn a_change_without_a_patch_blocks() {
    let mut story = Story::past::<Old>().await;
    let (message, history) = story.blocks_with::<Gone>().await;
    PAGE.check("a run is past the place, then the code is changed without a patch", &history);
    assert!(message.contains("- recorded    11 ActivityScheduled activity-1, charge"), "{message}");
    assert!(message.contains("+ code           ActivityScheduled activity-1, check_fraud"));
}

#[tokio::test]
async fn a_patched_run_does_not_fit_the_build_before_the_patch() {
    let mut story = Story::past::<Patched>().await;
    let (message, history) = story.blocks_with::<Old>().await;
    PAGE.check("a run follows the patch, then the build from before comes back", &history);
    assert!(message.contains("the run follows the patch \"check-fraud\""), "{message}");
    let (result, _) = story.ends_with::<Patched>().await;
    assert_eq!(result, "new");
}
