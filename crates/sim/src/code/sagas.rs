//! Steps that are undone when a later one fails, through the saga of the SDK.

use std::time::Duration;

use abide_core::retry;
use abide_sdk::{Context, Error, OnCancel, Saga};

use super::{
    steps::{Stopped, call, record_outcome},
    workflow::Scripted,
};
use crate::programs::{self, Activity, Quirk};

/// Activity that takes a step.
pub const STEP: &str = "step";

/// Activity that undoes a step.
pub const UNDO: &str = "unstep";

/// Activity that undoes a step, or fails to.
pub const STUBBORN_UNDO: &str = "stubborn";

/// How the trace reports a saga that was undone.
pub const UNDONE: &str = "undone";

/// How the trace reports what a saga could not undo.
pub const NOT_UNDONE: &str = "not undone";

const LIMIT: Duration = Duration::from_secs(2);

/// Takes the steps, and the activity after them.
pub(super) async fn run<const N: usize>(
    ctx: &Context<Scripted<N>>,
    saga: &programs::Saga,
) -> Stopped {
    let number = ctx.write(Scripted::next_number);
    let quirk = ctx.read(|state| state.program.quirk);
    let at_once = saga.at_once || quirk == Some(Quirk::UndoneAtOnce);
    let steps = if at_once { Saga::new().undo_at_once() } else { Saga::new() };
    // Whether it is undone step by step must be known from history.
    let way = if saga.at_once { "at once" } else { "in turn" };
    let ended = steps.run(ctx, async |undoing| {
        for (index, step) in saga.steps.iter().enumerate() {
            let named = format!("{number}.{index}.{way}");
            call(ctx, &retried(STEP), &named).await?;
            let undo = retried(if step.stubborn { STUBBORN_UNDO } else { UNDO });
            let last = index + 1 == saga.steps.len();
            if !(last && quirk == Some(Quirk::StepNotUndone)) {
                undoing.undo(named.clone(), call(ctx, &undo, &named));
            }
        }
        call(ctx, &saga.last, "").await
    });
    let name = format!("saga {number}");
    match ended.await {
        Err(Error::Saga(failed)) => {
            let left: Vec<_> = failed.undo_failures.into_iter().map(|it| it.step).collect();
            let told = format!("{NOT_UNDONE} {}", left.join(","));
            ctx.write(|state| state.note(format!("{name}={told}")));
            record_outcome(ctx, &name, Err(failed.cause))
        }
        Err(error) => {
            ctx.write(|state| state.note(format!("{name}={UNDONE}")));
            record_outcome(ctx, &name, Err(error))
        }
        Ok(_) => record_outcome(ctx, &name, Ok("done".into())),
    }
}

/// An activity that is retried until it succeeds, or fails permanently. A cancelled saga waits for
/// the outcome of its step, to know whether it must be undone.
fn retried(activity_type: &'static str) -> Activity {
    Activity {
        activity_type,
        retry: Some(retry::RetryPolicy::default()),
        start_to_close: Some(LIMIT),
        on_cancel: OnCancel::CancelAndWait,
        ..Activity::default()
    }
}
