//! Runs an attempt of an activity and sees to it that the engine gets its result.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use abide_core::{
    call::{ActivityToken, Call, CallError},
    failure::{Failure, FailureKind},
    run::{ActivityGiven, Refusal, Resolution},
};
use futures_util::FutureExt;

use super::{attempts::Attempt, heartbeat::Heartbeats, notice, shared::Shared};
use crate::{
    activity::{ActivityContext, ActivityInfo},
    backoff::Backoff,
    registry::ActivityEnd,
};

/// Between two tries to deliver a result.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Takes an attempt that was given and runs it.
pub(super) fn begin(shared: &Arc<Shared>, token: ActivityToken, given: ActivityGiven, eager: bool) {
    let attempt = Arc::new(Attempt::new(token));
    let place = Place::take(shared, &attempt, eager);
    shared.attempts.add(&attempt);
    let task = shared.runtime.spawn(run(place, given));
    shared.attempts.runs_as(&attempt, task.abort_handle());
}

/// An attempt's place; dropped when the attempt has ended, in whatever way.
struct Place {
    shared: Arc<Shared>,
    attempt: Arc<Attempt>,
    eager: bool,
}

impl Place {
    fn take(shared: &Arc<Shared>, attempt: &Arc<Attempt>, eager: bool) -> Self {
        if eager {
            shared.eager.take(attempt.token.run);
        } else {
            shared.activities.take();
        }
        Self { shared: Arc::clone(shared), attempt: Arc::clone(attempt), eager }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.attempts.remove(&self.attempt);
        if self.eager {
            self.shared.eager.give_back();
        } else {
            self.shared.activities.give_back();
        }
        self.shared.ended.notify_one();
    }
}

async fn run(place: Place, given: ActivityGiven) {
    let Place { shared, attempt, .. } = &place;
    let timeout = given.spec.heartbeat;
    let heartbeats = Heartbeats::new(Arc::clone(shared), Arc::clone(attempt), timeout);
    let name = given.spec.activity_type.clone();
    // A panic is a failure of the attempt like any other, and is retried.
    let code = execute(shared, attempt, given, heartbeats.clone());
    let code = AssertUnwindSafe(code).catch_unwind();
    let resolution = match code.await {
        Ok(ActivityEnd::Completed(result)) => Resolution::Completed(result),
        Ok(ActivityEnd::Failed(failure)) => Resolution::Failed(failure),
        Ok(ActivityEnd::Cancelled(details)) => Resolution::Cancelled(details),
        Err(panic) => Resolution::Failed(panicked(&*panic)),
    };
    attempt.end();
    if let Resolution::Failed(failure) = &resolution {
        let workflow = &attempt.token.workflow;
        notice::warn(workflow, format_args!("an attempt of {name} failed: {}", failure.message));
        heartbeats.flush().await;
    }
    deliver(shared, attempt, resolution).await;
}

async fn execute(
    shared: &Arc<Shared>,
    attempt: &Arc<Attempt>,
    mut given: ActivityGiven,
    heartbeats: Heartbeats,
) -> ActivityEnd {
    let name = &given.spec.activity_type;
    let Some(code) = shared.registry.activity_code(name) else {
        // Retried: a worker that knows it may be on its way.
        return ActivityEnd::Failed(unknown(shared, name));
    };
    let input = std::mem::take(&mut given.spec.input);
    let token = &attempt.token;
    let info = ActivityInfo { given, workflow: token.workflow.clone(), run: token.run };
    code.run(ActivityContext::new(info, Arc::new(heartbeats), attempt.cancel.clone()), input).await
}

/// Sends the result until the engine has taken it or does not want it any more.
async fn deliver(shared: &Shared, attempt: &Attempt, mut resolution: Resolution) {
    let mut backoff = Backoff::new(LONGEST_WAIT);
    while !attempt.lost() {
        let sender = shared.stream.borrow().clone();
        let Some(sender) = sender else {
            // The worker connects again, and then the result is sent.
            let connected = shared.stream.subscribe().wait_for(Option::is_some).await.is_ok();
            if connected {
                continue;
            }
            return;
        };
        let call = Call::ResolveActivity(attempt.token.clone(), resolution.clone());
        let Err(error) = sender.call(call).await else { return };
        match error {
            CallError::Refused(Refusal::CancelNotRequested) => {
                resolution = Resolution::Failed(not_cancelled());
            }
            CallError::Invalid(invalid) if !matches!(resolution, Resolution::Failed(_)) => {
                resolution = Resolution::Failed(unfit(&invalid.to_string()));
            }
            CallError::Reset
            | CallError::Unavailable(_)
            | CallError::NotServed
            | CallError::Overloaded
            | CallError::Refused(Refusal::Busy) => tokio::time::sleep(backoff.step()).await,
            error => {
                let workflow = &attempt.token.workflow;
                tracing::debug!(%workflow, %error, "the result of an attempt was not taken");
                return;
            }
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    Failure {
        message: format!("the activity panicked: {text}"),
        error_type: "Panic".into(),
        ..Failure::default()
    }
}

fn unknown(shared: &Shared, name: &str) -> Failure {
    let known: Vec<_> = shared.registry.activity_types().collect();
    let (queue, known) = (&shared.queue, known.join(", "));
    let message = format!(
        "activity {name} is not registered with this worker of queue {queue}; it has: {known}"
    );
    Failure { message, error_type: "UnknownActivity".into(), ..Failure::default() }
}

fn not_cancelled() -> Failure {
    let message = "the activity stopped as if it had been cancelled, but nobody asked for it";
    Failure::server(FailureKind::Application, message)
}

/// A result that the engine refuses will be refused again, so the activity is not.
fn unfit(problem: &str) -> Failure {
    let message = format!("the result cannot be stored: {problem}");
    Failure { non_retryable: true, ..Failure::server(FailureKind::Application, message) }
}
