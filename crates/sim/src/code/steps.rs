//! The steps of a program, done through the context of the SDK.

use std::time::Duration;

use abide_core::{event::Delivery, payload::Payload, retry::RetryPolicy};
use abide_sdk::{
    ActivityDef, Context, Error, RawPayload, SignalDef, future::LocalBoxFuture, join,
    payload::Arguments, select,
};

use super::{
    children, waits,
    workflow::{Scripted, ignored, make_value},
};
use crate::programs::{Activity, Node, Program, Quirk};

/// The activities that clean up after a cancelled run, in their order.
pub const CLEANUP_STEPS: [&str; 3] = ["undo0", "undo1", "undo2"];

/// How long an attempt of one of them may take.
const CLEANUP_LIMIT: Duration = Duration::from_secs(2);

/// Why a program ends before its last step: a step fails, cancels or continues the run.
#[derive(Debug)]
pub(super) struct Stop(pub(super) Error);

pub(super) type Stopped<T = ()> = Result<T, Stop>;

/// Does one step, with all that is in it.
pub(super) fn follow<'a, const N: usize>(
    ctx: &'a Context<Scripted<N>>,
    node: &'a Node,
) -> LocalBoxFuture<'a, Stopped> {
    Box::pin(async move {
        match node {
            Node::Sequence(steps) => {
                for step in steps {
                    follow(ctx, step).await?;
                }
                Ok(())
            }
            // Both ways to do several things at once.
            Node::Join(steps) if steps.len() > 2 => spawn_all(ctx, steps).await,
            Node::Join(steps) => follow_all(ctx, steps).await,
            Node::Select(steps) => follow_first(ctx, steps).await,
            Node::Sleep(delay, terms) => waits::sleep(ctx, *delay, terms).await,
            Node::Receive { name, timeout, terms } => {
                waits::receive(ctx, *name, *timeout, terms).await
            }
            Node::Until { goal, timeout, terms } => waits::until(ctx, *goal, *timeout, terms).await,
            Node::Approve { needed, timeout, terms } => {
                waits::approve(ctx, *needed, *timeout, terms).await
            }
            Node::Move(how) => {
                waits::move_deadline(ctx, *how);
                Ok(())
            }
            Node::Activity(activity) => run_activity(ctx, activity).await,
            Node::Child(child) => children::run(ctx, child).await,
            Node::SignalExternal { workflow, name } => {
                let other = ctx.external(workflow.as_str());
                let sent = other.signal(signal::<0>(name), unique_text(ctx)).await;
                came_to(ctx, workflow, sent.map(|()| "signalled".into()))
            }
            Node::CancelExternal { workflow } => {
                let asked = ctx.external::<Scripted<0>>(workflow.as_str()).cancel().await;
                came_to(ctx, workflow, asked.map(|()| "asked to cancel".into()))
            }
            Node::SideEffect => {
                let value = ctx.side_effect(make_value);
                came_to(ctx, "value", value.map(|value| value.to_string()))
            }
            Node::Patch { change, new, old } => {
                let follows = ctx.patched(change);
                follow(ctx, if follows { new } else { old }).await
            }
            Node::ContinueAsNew { runs } if ctx.started().ordinal < *runs => {
                Err(Stop(ctx.continue_as_new(())))
            }
            Node::ContinueAsNew { .. } => Ok(()),
            Node::Fail => Err(Stop(Error::fail("drawn"))),
        }
    })
}

fn follow_all<'a, const N: usize>(
    ctx: &'a Context<Scripted<N>>,
    steps: &'a [Node],
) -> LocalBoxFuture<'a, Stopped> {
    Box::pin(async move {
        let Some((first, others)) = steps.split_first() else { return Ok(()) };
        let (first, others) = join!(follow(ctx, first), follow_all(ctx, others));
        first.and(others)
    })
}

fn follow_first<'a, const N: usize>(
    ctx: &'a Context<Scripted<N>>,
    steps: &'a [Node],
) -> LocalBoxFuture<'a, Stopped> {
    Box::pin(async move {
        match steps {
            [] => Ok(()),
            [only] => follow(ctx, only).await,
            [first, others @ ..] => select! {
                ended = follow(ctx, first) => ended,
                ended = follow_first(ctx, others) => ended,
            },
        }
    })
}

/// If one stops the run, the others still run when it ends.
async fn spawn_all<const N: usize>(ctx: &Context<Scripted<N>>, steps: &[Node]) -> Stopped {
    let spawn = |step: &Node| {
        let (own, step) = (ctx.clone(), step.clone());
        ctx.spawn(async move { follow(&own, &step).await })
    };
    let tasks: Vec<_> = steps.iter().map(spawn).collect();
    for task in tasks {
        task.await?;
    }
    Ok(())
}

/// Runs an activity.
pub(super) async fn run_activity<const N: usize>(
    ctx: &Context<Scripted<N>>,
    activity: &Activity,
) -> Stopped {
    let once = RetryPolicy { maximum_attempts: 1, ..RetryPolicy::default() };
    let retry = activity.retry.clone().unwrap_or(once);
    let mut call = ctx.activity(definition(activity.activity_type), ()).retry(retry);
    if let Some(limit) = activity.start_to_close {
        call = call.start_to_close(limit);
    }
    if let Some(limit) = activity.heartbeat {
        call = call.heartbeat_timeout(limit);
    }
    if activity.delivery == Delivery::AtMostOnce {
        call = call.at_most_once();
    }
    let result = call.await;
    came_to(ctx, activity.activity_type, result.map(|payload| text(&payload)))
}

/// Takes back what the run has done, one step after the other.
pub(super) async fn clean_up<const N: usize>(
    ctx: &Context<Scripted<N>>,
    program: &Program,
) -> Stopped {
    let steps = &CLEANUP_STEPS[..program.cleanup.min(CLEANUP_STEPS.len())];
    let (steps, again) = match (program.quirk, steps) {
        (Some(Quirk::CleanupCutShort), [shorter @ .., _]) => (shorter, &[][..]),
        (Some(Quirk::CleanupTwice), steps) => (steps, steps),
        _ => (steps, &[][..]),
    };
    for step in steps.iter().chain(again) {
        let call = ctx.activity(definition(step), ()).start_to_close(CLEANUP_LIMIT);
        came_to(ctx, step, call.await.map(|payload| text(&payload)))?;
    }
    Ok(())
}

/// Notes what a step came to. A failure is not the end; a request to cancel is, unless it is ignored.
pub(super) fn came_to<const N: usize>(
    ctx: &Context<Scripted<N>>,
    what: &str,
    result: Result<String, Error>,
) -> Stopped {
    match result {
        Ok(value) => ctx.write(|state| state.note(format!("{what}={value}"))),
        Err(Error::Cancelled) => ignored(ctx, Error::Cancelled).map_err(Stop)?,
        Err(error) => ctx.write(|state| state.note(format!("{what} failed: {error}"))),
    }
    Ok(())
}

/// Attempts are drawn by the world, so the code of an activity is never called.
fn definition(activity_type: &'static str) -> ActivityDef<(), (), RawPayload> {
    ActivityDef::new(activity_type, Arguments::none(), |(), _, ()| {
        Box::pin(std::future::ready(Ok(RawPayload::default())))
    })
}

pub(super) fn signal<const N: usize>(name: &str) -> SignalDef<Scripted<N>, RawPayload> {
    match name {
        "tell" => Scripted::TELL,
        "stop" => Scripted::STOP,
        _ => Scripted::GO,
    }
}

/// A text that no other signal has, by which a signal that arrives twice is found.
pub(super) fn unique_text<const N: usize>(ctx: &Context<Scripted<N>>) -> RawPayload {
    RawPayload(Payload::new(format!("{} {}", ctx.run_id(), ctx.uuid())))
}

/// User data as text.
pub(super) fn text(payload: &RawPayload) -> String {
    String::from_utf8_lossy(&payload.0.data).into_owned()
}
