//! Steps that wait, through the context of the SDK. Each records the timer of its deadline, so that
//! checks can compare what code saw with history.

use std::time::Duration;

use abide_core::time::Timestamp;
use abide_sdk::{
    Context, Deadline, Outcome, RawPayload,
    approval::{Decision, Request, Verdict},
};

use super::{
    steps::{Stopped, record_outcome, signal, text},
    workflow::{APPROVERS, Scripted},
};
use crate::programs::{Goal, Move, Terms};

/// Adds the details that the program draws for a wait.
macro_rules! described {
    ($wait:expr, $terms:expr) => {
        if $terms.described { $wait.about("a drawn wait").data("amount", &7) } else { $wait }
    };
}

/// Limits what clients may do to the deadline of a wait.
macro_rules! guarded {
    ($ctx:expr, $wait:expr, $terms:expr) => {{
        let mut wait = $wait;
        if let Some(longest) = $terms.not_after {
            wait = wait.not_after($ctx.now().saturating_add(longest));
        }
        if let Some(count) = $terms.max_extensions {
            wait = wait.max_extensions(count);
        }
        wait
    }};
}

pub(super) async fn sleep<const N: usize>(
    ctx: &Context<Scripted<N>>,
    delay: Duration,
    terms: &Terms,
) -> Stopped {
    let sleep = guarded!(ctx, described!(ctx.sleep(delay), terms), terms).start();
    let what = watched(ctx, "sleep", sleep.deadline());
    let slept = sleep.await;
    if slept.is_ok() {
        ctx.write(|state| state.sleeps += 1);
    }
    record_outcome(ctx, &what, slept.map(|()| ctx.uuid().to_string()))
}

pub(super) async fn receive<const N: usize>(
    ctx: &Context<Scripted<N>>,
    name: Option<&'static str>,
    timeout: Option<Duration>,
    terms: &Terms,
) -> Stopped {
    let Some(name) = name else { return receive_any(ctx, timeout, terms).await };
    let wait = described!(ctx.receive(signal::<N>(name)), terms);
    let (what, received) = match timeout {
        Some(timeout) => {
            let wait = guarded!(ctx, wait.timeout(timeout), terms).start();
            (watched(ctx, name, wait.deadline()), wait.await)
        }
        None => (name.to_owned(), wait.await.map(Outcome::InTime)),
    };
    record_outcome(
        ctx,
        &what,
        received.map(|outcome| shown_outcome(outcome.ok().as_ref().map(text))),
    )
}

async fn receive_any<const N: usize>(
    ctx: &Context<Scripted<N>>,
    timeout: Option<Duration>,
    terms: &Terms,
) -> Stopped {
    let wait = described!(ctx.receive_any(), terms);
    let (what, received) = match timeout {
        Some(timeout) => {
            let wait = guarded!(ctx, wait.timeout(timeout), terms).start();
            (watched(ctx, "any", wait.deadline()), wait.await)
        }
        None => ("any".into(), wait.await.map(Outcome::InTime)),
    };
    let read = received.map(|outcome| outcome.ok());
    let first = |payloads: &[_]| payloads.first().cloned().map(RawPayload).unwrap_or_default();
    let read = read.map(|signal| signal.map(|signal| text(&first(signal.payloads()))));
    record_outcome(ctx, &what, read.map(shown_outcome))
}

pub(super) async fn until<const N: usize>(
    ctx: &Context<Scripted<N>>,
    goal: Goal,
    timeout: Option<Duration>,
    terms: &Terms,
) -> Stopped {
    let wait = described!(ctx.wait_until(Scripted::condition(goal)), terms);
    let (what, held) = match timeout {
        Some(timeout) => {
            let wait = guarded!(ctx, wait.timeout(timeout), terms).start();
            (watched(ctx, "condition", wait.deadline()), wait.await)
        }
        None => ("condition".into(), wait.await.map(Outcome::InTime)),
    };
    record_outcome(
        ctx,
        &what,
        held.map(|outcome| shown_outcome(outcome.ok().map(|()| "held".into()))),
    )
}

/// Requests an approval. The id of the request says how many people must agree.
pub(super) async fn approve<const N: usize>(
    ctx: &Context<Scripted<N>>,
    needed: usize,
    timeout: Option<Duration>,
    terms: &Terms,
) -> Stopped {
    let number = ctx.write(|state| {
        state.requests += 1;
        state.requests
    });
    let request = Request::new(format!("ask{number}.{needed}")).approvers(APPROVERS);
    let mut request = guarded!(ctx, described!(request, terms), terms);
    if needed > 1 {
        request = request.quorum(needed, APPROVERS.len());
    }
    if let Some(timeout) = timeout {
        request = request.timeout(timeout).fallback(Decision::Reject);
    }
    let open = ctx.approval(request).start();
    let what = watched(ctx, "approval", open.deadline());
    let told = |verdict: Verdict| match verdict {
        Verdict::Decided { choice, votes } => format!("{choice:?} by {}", votes.len()),
        Verdict::TimedOut { .. } => TIMED_OUT.into(),
        Verdict::Withdrawn { .. } => "withdrawn".into(),
    };
    record_outcome(ctx, &what, open.await.map(told))
}

/// Reschedules the oldest open deadline of the run.
pub(super) fn move_deadline<const N: usize>(ctx: &Context<Scripted<N>>, how: Move) {
    let deadline = ctx.write(Scripted::oldest_deadline);
    let moved = match how {
        Move::In(delay) => deadline.reset(ctx.now().saturating_add(delay)),
        Move::By(delay) => deadline.extend(delay).map(|_| ()),
        Move::Past => deadline.reset(Timestamp::EPOCH),
        Move::Never => deadline.reset(Timestamp::NEVER),
    };
    ctx.write(|state| state.note(format!("moved={moved:?}")));
}

/// Lets others reschedule the deadline, and names the wait by what it waits for and its timer.
fn watched<const N: usize>(
    ctx: &Context<Scripted<N>>,
    subject: &str,
    deadline: Deadline,
) -> String {
    let what = match deadline.timer_id() {
        Some(timer) => format!("{subject} {timer}"),
        None => subject.to_owned(),
    };
    ctx.write(|state| state.watch(deadline));
    what
}

/// Outcome of a wait, for the trace.
fn shown_outcome(came: Option<String>) -> String {
    came.unwrap_or_else(|| TIMED_OUT.into())
}

/// How the trace reports that a wait timed out.
const TIMED_OUT: &str = "timed out";
