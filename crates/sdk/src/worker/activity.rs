//! Runs an attempt of an activity and delivers its result to the engine.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use abide_core::{
    attempt::ActivityToken,
    failure::{Failure, FailureKind},
    ids::RunId,
    operation::CallError,
    report::Report,
    run::{ActivityGiven, Refusal, Resolution},
    time::Timestamp,
};
use futures_util::FutureExt;
use tracing::Instrument;

use super::{
    attempts::Attempt, failed_attempt::FailedAttempt, heartbeat::Heartbeats, metrics::count,
    notice, overdue::Overdue, oversized, shared::WorkerCore, span,
};
use crate::{
    activity::{ActivityContext, ActivityInfo},
    backoff::Backoff,
    panic,
    registry::ActivityEnd,
};

/// The longest pause between two tries to deliver a result.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Starts an attempt that the engine dispatched.
pub(super) fn begin(
    shared: &Arc<WorkerCore>,
    token: ActivityToken,
    given: ActivityGiven,
    eager: bool,
) {
    let slot = ActivitySlot::take(shared, token.run, eager);
    let attempt = Arc::new(Attempt::new(token));
    if !shared.attempts.add(&attempt) {
        // The attempt runs already; dropping the second slot returns its credit.
        return;
    }
    let place = RunningAttempt { attempt: Arc::clone(&attempt), slot };
    let task = shared.runtime.spawn(run(place, given));
    shared.attempts.runs_as(&attempt, task.abort_handle());
}

/// A slot for an attempt, returned when dropped.
struct ActivitySlot {
    shared: Arc<WorkerCore>,
    eager: bool,
}

impl ActivitySlot {
    fn take(shared: &Arc<WorkerCore>, run: RunId, eager: bool) -> Self {
        if eager {
            shared.eager.take(run);
        } else {
            shared.activities.take();
        }
        Self { shared: Arc::clone(shared), eager }
    }
}

impl Drop for ActivitySlot {
    fn drop(&mut self) {
        if self.eager {
            self.shared.eager.give_back();
        } else {
            self.shared.activities.give_back();
        }
        self.shared.ended.notify_one();
    }
}

/// An attempt's entry among the held attempts and its slot; both are released when the attempt
/// ends.
struct RunningAttempt {
    attempt: Arc<Attempt>,
    slot: ActivitySlot,
}

impl Drop for RunningAttempt {
    fn drop(&mut self) {
        self.slot.shared.attempts.remove(&self.attempt);
    }
}

async fn run(place: RunningAttempt, given: ActivityGiven) {
    let (shared, attempt) = (&place.slot.shared, &place.attempt);
    let workflow = &attempt.token.workflow;
    let heartbeats = Heartbeats::new(Arc::clone(shared), Arc::clone(attempt), given.spec.heartbeat);
    let name = given.spec.activity_type.clone();
    let overdue = Overdue::of(&given.spec);
    let failed = FailedAttempt::of(&given);
    let counts = shared.metrics.activity(&name);
    if given.attempt == 1 {
        counts.schedule_to_start.record(now().saturating_since(given.scheduled_at));
    }
    let began = Instant::now();
    // A panic is a failure of the attempt and is retried like any other.
    let code = execute(shared, attempt, given, heartbeats.clone());
    let code = AssertUnwindSafe(code).catch_unwind();
    let ended = tokio::select! {
        biased;
        ended = code => ended,
        () = overdue.given_up(shared, attempt) => {
            count(&counts.dropped);
            let what = format_args!("an abandoned attempt of {name} did not stop: dropped");
            return notice::warn(workflow, what);
        }
    };
    let ending = match ended {
        Ok(ActivityEnd::Completed(result)) => AttemptEnd::Resolved(Resolution::Completed(result)),
        Ok(ActivityEnd::Failed(failure)) => {
            AttemptEnd::Resolved(Resolution::Failed(failure.into()))
        }
        Ok(ActivityEnd::Cancelled(details)) => AttemptEnd::Resolved(Resolution::Cancelled(details)),
        Ok(ActivityEnd::Later) => AttemptEnd::Left,
        Err(panic) => AttemptEnd::Resolved(Resolution::Failed(panicked(&*panic))),
    };
    attempt.end();
    counts.latency.record(began.elapsed());
    count(match &ending {
        AttemptEnd::Resolved(Resolution::Completed(_)) => &counts.completed,
        AttemptEnd::Resolved(Resolution::Cancelled(_)) => &counts.cancelled,
        AttemptEnd::Resolved(_) => &counts.failed,
        AttemptEnd::Left => &counts.left,
    });
    if let AttemptEnd::Resolved(Resolution::Failed(failure)) = &ending {
        failed.log(workflow, failure);
    }
    if !matches!(ending, AttemptEnd::Resolved(Resolution::Completed(_) | Resolution::Cancelled(_)))
    {
        heartbeats.flush().await;
    }
    deliver(shared, attempt, ending).await;
}

/// How an attempt ends for the worker.
#[derive(Clone)]
enum AttemptEnd {
    Resolved(Resolution),
    /// Another process completes it, by its token.
    Left,
}

async fn execute(
    shared: &Arc<WorkerCore>,
    attempt: &Arc<Attempt>,
    mut given: ActivityGiven,
    heartbeats: Heartbeats,
) -> ActivityEnd {
    let Some(code) = shared.registry.activity_code(&given.spec.activity_type) else {
        // A failure that is retried: a worker that has the activity may be starting.
        return ActivityEnd::Failed(unknown(shared, &given.spec.activity_type).into());
    };
    if let Err(failure) = shared.decode_attempt(attempt, &mut given).await {
        return ActivityEnd::Failed(failure.into());
    }
    let input = std::mem::take(&mut given.spec.input);
    let token = &attempt.token;
    let info = ActivityInfo { given, workflow: token.workflow.clone(), run: token.run };
    let span = span::of_attempt(&info);
    let context = ActivityContext::new(info, Arc::new(heartbeats), attempt.cancel.clone());
    // Called within the span, because an activity may do something before it returns its future.
    let code = span.in_scope(|| code.run(context, input));
    code.instrument(span).await
}

/// The time of this machine, to be compared with that of the engine.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::EPOCH.saturating_add(since)
}

/// Sends the end until the engine accepts it or no longer wants it.
async fn deliver(shared: &WorkerCore, attempt: &Attempt, mut ending: AttemptEnd) {
    let mut backoff = Backoff::new(LONGEST_WAIT);
    while !attempt.lost() {
        // Without a stream the worker reconnects first; then the result is sent.
        let Some(sender) = shared.sender().await else { return };
        let token = attempt.token.clone();
        let report = match &ending {
            AttemptEnd::Resolved(resolution) => Report::ResolveActivity(token, resolution.clone()),
            AttemptEnd::Left => Report::DetachAttempt(token),
        };
        let Err(error) = shared.send(sender, report).await else { return };
        ending = match (error, ending) {
            (CallError::Refused(Refusal::CancelNotRequested), _) => {
                AttemptEnd::Resolved(Resolution::Failed(not_cancelled()))
            }
            (CallError::Invalid(invalid), AttemptEnd::Resolved(resolution)) => {
                match oversized::instead_of(resolution, &invalid) {
                    Some(fit) => AttemptEnd::Resolved(fit),
                    None => return,
                }
            }
            (error, ending) if error.passing() => {
                tokio::time::sleep(backoff.step()).await;
                ending
            }
            (error, _) => {
                let workflow = &attempt.token.workflow;
                let what = format_args!("the result of an attempt was not accepted: {error}");
                notice::debug(workflow, what);
                return;
            }
        };
    }
}

pub(super) fn panicked(panic: &(dyn Any + Send)) -> Failure {
    Failure {
        message: format!("the activity panicked: {}", panic::message(panic)),
        error_type: "Panic".into(),
        ..Failure::default()
    }
}

fn unknown(shared: &WorkerCore, name: &str) -> Failure {
    let known: Vec<_> = shared.registry.activity_types().collect();
    let (queue, known) = (&shared.queue, known.join(", "));
    let message = format!(
        "activity {name} is not registered with this worker of queue {queue}; it has: {known}"
    );
    Failure { message, error_type: "UnknownActivity".into(), ..Failure::default() }
}

pub(super) fn not_cancelled() -> Failure {
    let message = "the activity returned a cancellation that was not requested";
    Failure::server(FailureKind::Application, message)
}
