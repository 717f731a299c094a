//! The workflows of the benchmarks: minimal ones with an activity, with a sleep, and with a signal.

use abide::{Client, Timestamp, Worker, prelude::*};
use abide_command::time::system_now;

use crate::resumed;

/// The queue of the benchmarks, separate from others on the same engine.
pub(crate) const QUEUE: &str = "abide-bench";

/// What a waiting run waits for.
#[derive(Clone, Copy)]
pub(crate) enum WaitFor {
    Until(Timestamp),
    /// A signal, without a deadline.
    ForSignal,
}

#[activity(name = "abide-bench-greet")]
async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

#[workflow(name = "abide-bench-hello")]
pub(crate) async fn greeting(ctx: &Context, name: String) -> abide::Result<String> {
    ctx.activity(greet, name).start_to_close(seconds(10)).await
}

/// Sleeps until a moment, and reports to this process when it continued: it is a benchmark, and the
/// report does not affect what it does.
#[workflow(name = "abide-bench-sleep")]
pub(crate) async fn sleeper(ctx: &Context, due_unix_ms: u64) -> abide::Result<()> {
    let due = Timestamp::from_unix_millis(due_unix_ms);
    let sleep = ctx.sleep_until(due);
    if !ctx.is_replaying() {
        resumed::waits();
    }
    sleep.await?;
    resumed::goes_on(due, system_now());
    Ok(())
}

/// Completes when it is signalled.
#[derive(Default)]
pub(crate) struct Signalled;

#[workflow(name = "abide-bench-signal")]
impl Signalled {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        if !ctx.is_replaying() {
            resumed::waits();
        }
        ctx.receive(Self::GO).await
    }

    #[signal]
    pub(crate) fn go();
}

/// A worker with all of these workflows.
pub(crate) fn worker(client: &Client) -> Worker {
    Worker::new(client)
        .queue(QUEUE)
        .workflow::<greeting>()
        .workflow::<sleeper>()
        .workflow::<Signalled>()
        .activity(greet)
}
