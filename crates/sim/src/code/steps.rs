//! Steps of a program, executed through the context of the SDK.

use abide_core::{event::Delivery, payload::Payload, retry::RetryPolicy};
use abide_sdk::{
    ActivityDef, Context, Error, RawPayload, SignalDef, context::ActivityCall,
    future::LocalBoxFuture, join, payload::Arguments, select,
};

use super::{
    children, crowds, sagas, scopes, waits,
    workflow::{Scripted, ignored, make_value},
};
use crate::{
    attributes::{STAGE, TAGS},
    programs::{Activity, Local, Node, Successor, Upsert},
};

/// Why a program ends before its last step: a step fails, cancels or continues the run.
#[derive(Debug)]
pub(super) struct Stop(pub(super) Error);

pub(super) type Stopped<T = ()> = Result<T, Stop>;

/// Executes one step, with all that is in it.
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
            // Covers both ways to run steps concurrently.
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
            Node::Local(local) => run_locally(ctx, local).await,
            Node::Child(child) => children::run(ctx, child).await,
            Node::Crowd(crowd) => crowds::run(ctx, crowd).await,
            Node::Saga(saga) => sagas::run(ctx, saga).await,
            Node::Scope { body, cancel_after } => scopes::scope(ctx, body, *cancel_after).await,
            Node::Shield { body, timeout } => scopes::shield(ctx, body, *timeout).await,
            Node::SignalExternal { workflow, name } => {
                let other = ctx.external::<Scripted<0>>(workflow.as_str());
                let sent = other.signal(signal::<0>(name), unique_text(ctx)).await;
                record_outcome(ctx, workflow, sent.map(|()| "signalled".into()))
            }
            Node::CancelExternal { workflow } => {
                let asked = ctx.external::<Scripted<0>>(workflow.as_str()).cancel().await;
                record_outcome(ctx, workflow, asked.map(|()| "asked to cancel".into()))
            }
            Node::Finish => {
                let finished = ctx.handlers_finished().await;
                record_outcome(ctx, "handlers", finished.map(|()| "finished".into()))
            }
            Node::SideEffect => {
                let value = ctx.side_effect(make_value);
                record_outcome(ctx, "value", value.map(|value| value.to_string()))
            }
            Node::Upsert(Upsert { stage, tags }) => {
                let stage = stage.map_or_else(|| STAGE.unset(), |stage| STAGE.set(stage));
                let tags = tags.clone().map_or_else(|| TAGS.unset(), |tags| TAGS.set(tags));
                let upserted = ctx.upsert_search_attributes([stage, tags]);
                record_outcome(ctx, "attributes", upserted.map(|()| "upserted".into()))
            }
            Node::Patch { change, new, old } => {
                let follows = ctx.patched(change);
                follow(ctx, if follows { new } else { old }).await
            }
            Node::ContinueAsNew { runs, successor } if ctx.started().ordinal < *runs => {
                Err(Stop(match successor {
                    Successor::Alike => ctx.continue_as_new(()),
                    Successor::Limited(limit) => ctx.next_run(()).run_timeout(*limit).into(),
                    Successor::Childless => ctx.next_run_as::<Scripted<0>>(()).into(),
                }))
            }
            Node::ContinueAsNew { .. } => Ok(()),
            Node::Fail => Err(Stop(Error::new("drawn"))),
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

/// If one stops the run, the others are still running when it ends.
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

pub(super) async fn run_activity<const N: usize>(
    ctx: &Context<Scripted<N>>,
    activity: &Activity,
) -> Stopped {
    let mut result = call(ctx, activity, "").start();
    let result = match activity.give_up {
        None => result.await,
        Some(patience) => select! {
            result = &mut result => result,
            _ = ctx.sleep(patience) => {
                result.cancel();
                result.await
            }
        },
    };
    record_outcome(ctx, activity.activity_type, result.map(|payload| text(&payload)))
}

/// Runs an activity within the workflow task.
async fn run_locally<const N: usize>(ctx: &Context<Scripted<N>>, local: &Local) -> Stopped {
    let definition = definition(local.activity_type);
    let mut call =
        ctx.local_activity(definition, RawPayload::default()).retry(local.retry.clone().into());
    if let Some(longest) = local.longest_delay {
        call = call.local_retry_threshold(longest);
    }
    record_outcome(ctx, "local", call.await.map(|payload| text(&payload)))
}

/// Calls an activity, with an argument that names it.
pub(super) fn call<const N: usize>(
    ctx: &Context<Scripted<N>>,
    activity: &Activity,
    named: &str,
) -> ActivityCall<RawPayload> {
    let once = RetryPolicy { maximum_attempts: 1, ..RetryPolicy::default() };
    let retry = activity.retry.clone().unwrap_or(once);
    let input = RawPayload(Payload::new(named.to_owned()));
    let mut call = ctx.activity(definition(activity.activity_type), input).retry(retry.into());
    call = call.on_cancel(activity.on_cancel);
    if let Some(limit) = activity.start_to_close {
        call = call.start_to_close(limit);
    }
    if let Some(limit) = activity.heartbeat {
        call = call.heartbeat_timeout(limit);
    }
    match activity.delivery {
        Delivery::AtMostOnce => call.at_most_once(),
        Delivery::AtLeastOnce => call,
    }
}

/// Records the outcome of a step. A failure does not end the program. Cancellation of the enclosing
/// part ends that part, unless such requests are ignored.
pub(super) fn record_outcome<const N: usize>(
    ctx: &Context<Scripted<N>>,
    what: &str,
    result: Result<String, Error>,
) -> Stopped {
    match result {
        Ok(value) => ctx.write(|state| state.note(format!("{what}={value}"))),
        Err(error) if error.is_cancelled() && ctx.is_cancel_requested() => {
            ignored(ctx, Error::Cancelled).map_err(Stop)?;
        }
        Err(error) => ctx.write(|state| state.note(format!("{what} failed: {error}"))),
    }
    Ok(())
}

/// The world draws the results of attempts, so the code of an activity is never called.
pub(super) fn definition(
    activity_type: &'static str,
) -> ActivityDef<(), (RawPayload,), RawPayload> {
    ActivityDef::new(activity_type, Arguments::one(), |(), _, _| {
        Box::pin(std::future::ready(Ok(RawPayload::default())))
    })
}

pub(super) fn signal<const N: usize>(name: &str) -> SignalDef<Scripted<N>, (RawPayload,)> {
    match name {
        "tell" => Scripted::TELL,
        "stop" => Scripted::STOP,
        _ => Scripted::GO,
    }
}

/// A text that no other signal has, to detect a signal that arrives twice. Code that runs again after
/// a reset has the same ids, and another time.
pub(super) fn unique_text<const N: usize>(ctx: &Context<Scripted<N>>) -> RawPayload {
    RawPayload(Payload::new(format!("{} {} {}", ctx.run_id(), ctx.uuid(), ctx.now())))
}

pub(super) fn text(payload: &RawPayload) -> String {
    String::from_utf8_lossy(&payload.0.data).into_owned()
}
