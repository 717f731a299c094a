//! Parts of a program that are cancelled together or not at all, and the cleanup of a cancelled
//! run.

use std::time::Duration;

use abide_sdk::{Context, Error, Outcome, RawPayload, select};

use super::{
    steps::{Stop, Stopped, definition, follow, record_outcome, text},
    workflow::Scripted,
};
use crate::programs::{Node, Program, Quirk};

/// Activities that clean up after a cancelled run, in order.
pub const CLEANUP_STEPS: [&str; 3] = ["undo0", "undo1", "undo2"];

/// How long an attempt of one of them may take.
const CLEANUP_LIMIT: Duration = Duration::from_secs(2);

/// Runs the whole program, and cleans up if it is cancelled.
pub(super) async fn whole<const N: usize>(
    ctx: &Context<Scripted<N>>,
    program: &Program,
) -> Stopped {
    let followed = async {
        match follow(ctx, &program.body).await {
            Err(Stop(Error::Cancelled)) => {
                clean_up_shielded(ctx, program).await?;
                Err(Stop(Error::Cancelled))
            }
            ended => ended,
        }
    };
    if program.scoped { ctx.scope(followed).await } else { followed.await }
}

async fn clean_up_shielded<const N: usize>(
    ctx: &Context<Scripted<N>>,
    program: &Program,
) -> Stopped {
    let cleaned = clean_up(ctx, program);
    match program.cleanup.limit {
        _ if program.quirk == Some(Quirk::Unshielded) => cleaned.await,
        None => ctx.shield(cleaned).await,
        Some(limit) => match ctx.shield(cleaned).timeout(limit).await {
            Outcome::InTime(cleaned) => cleaned,
            Outcome::TimedOut => {
                ctx.write(|state| state.note("cleanup timed out"));
                Ok(())
            }
        },
    }
}

/// Undoes what the run has done, one step after the other.
async fn clean_up<const N: usize>(ctx: &Context<Scripted<N>>, program: &Program) -> Stopped {
    let steps = &CLEANUP_STEPS[..program.cleanup.steps.min(CLEANUP_STEPS.len())];
    let (steps, again) = match (program.quirk, steps) {
        (Some(Quirk::CleanupCutShort), [shorter @ .., _]) => (shorter, &[][..]),
        (Some(Quirk::CleanupTwice), steps) => (steps, steps),
        _ => (steps, &[][..]),
    };
    for step in steps.iter().chain(again) {
        let call = ctx.activity(definition(step), RawPayload::default());
        let done = call.start_to_close(CLEANUP_LIMIT).await;
        record_outcome(ctx, step, done.map(|payload| text(&payload)))?;
    }
    Ok(())
}

/// A part that is cancelled as a whole: by a request to the run, or after some time.
pub(super) async fn scope<const N: usize>(
    ctx: &Context<Scripted<N>>,
    body: &Node,
    cancel_after: Option<Duration>,
) -> Stopped {
    let mut scope = ctx.scope(follow(ctx, body));
    let canceller = scope.canceller();
    let ended = match cancel_after {
        None => scope.await,
        Some(delay) => select! {
            ended = &mut scope => ended,
            _ = ctx.sleep(delay) => {
                canceller.cancel("drawn");
                scope.await
            }
        },
    };
    match ended {
        Err(Stop(Error::Cancelled)) if !ctx.is_cancel_requested() => {
            ctx.write(|state| state.note("scope cancelled"));
            Ok(())
        }
        ended => ended,
    }
}

/// A part that is shielded from cancel requests; the request takes effect after it.
pub(super) async fn shield<const N: usize>(
    ctx: &Context<Scripted<N>>,
    body: &Node,
    timeout: Option<Duration>,
) -> Stopped {
    let shielded = ctx.shield(follow(ctx, body));
    match timeout {
        None => shielded.await?,
        Some(timeout) => match shielded.timeout(timeout).await {
            Outcome::InTime(ended) => ended?,
            Outcome::TimedOut => ctx.write(|state| state.note("shield timed out")),
        },
    }
    let cancelled = ctx.is_cancel_requested();
    record_outcome(ctx, "shield", if cancelled { Err(Error::Cancelled) } else { Ok("over".into()) })
}
