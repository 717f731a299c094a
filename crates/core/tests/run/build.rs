//! Short ways to write down what tests are about: commands, specs, failures.

use std::time::Duration;

use abide_core::{
    command::{Ask, Command},
    event::*,
    failure::Failure,
    ids::{RunId, WorkflowKey},
    payload::{Payload, PayloadMap, Payloads},
    retry::RetryPolicy,
    time::Timestamp,
};

/// The moment at which every world begins.
pub(crate) const START: u64 = 1_800_000_000;

/// This many seconds after the world began.
pub(crate) fn at(seconds: u64) -> Timestamp {
    Timestamp::from_unix_millis((START + seconds) * 1000)
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn run_id(number: u128) -> RunId {
    RunId::from_parts(at(0), number)
}

pub(crate) fn workflow(name: &str) -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: name.into() }
}

/// A run of another workflow.
pub(crate) fn other() -> RunReference {
    RunReference { workflow: workflow("other"), run: run_id(77) }
}

/// The current run of another workflow, as a target.
pub(crate) fn target(name: &str) -> Target {
    Target { workflow: workflow(name), run: None, child: None }
}

pub(crate) fn payloads(text: &str) -> Payloads {
    vec![Payload::new(text.to_owned())]
}

pub(crate) fn map(name: &str, value: &str) -> PayloadMap {
    PayloadMap::from([(name.to_owned(), Payload::new(value.to_owned()))])
}

pub(crate) fn failure(message: &str) -> Failure {
    Failure { message: message.to_owned(), ..Failure::default() }
}

pub(crate) fn spec() -> RunSpec {
    RunSpec { workflow_type: "order".into(), queue: "main".into(), ..RunSpec::default() }
}

/// Retries without limit: after 1, 2, 4, ... seconds.
pub(crate) fn policy() -> RetryPolicy {
    RetryPolicy::default()
}

pub(crate) fn policy_of(maximum_attempts: u32) -> RetryPolicy {
    RetryPolicy { maximum_attempts, ..policy() }
}

pub(crate) fn timer_spec(timer: &str, fire_at: Timestamp, origin: Option<Origin>) -> TimerSpec {
    TimerSpec { timer: timer.into(), fire_at, origin, details: None, guards: Guards::default() }
}

/// Starts a sleep that is due this many seconds after the world began.
pub(crate) fn timer(timer: &str, due: u64) -> Ask {
    Ask::StartTimer(timer_spec(timer, at(due), Some(Origin::CreateTimer)))
}

/// Starts a sleep with guards.
pub(crate) fn guarded(timer: &str, due: u64, guards: Guards) -> Ask {
    let spec = timer_spec(timer, at(due), Some(Origin::CreateTimer));
    Ask::StartTimer(TimerSpec { guards, ..spec })
}

/// Starts the timer of a signal wait without deadline.
pub(crate) fn endless(timer: &str, name: &str) -> Ask {
    let origin = Origin::ExternalEvent { name: name.to_owned() };
    Ask::StartTimer(timer_spec(timer, Timestamp::NEVER, Some(origin)))
}

pub(crate) fn cancel_timer(timer: &str) -> Ask {
    Ask::CancelTimer(timer.into())
}

pub(crate) fn move_timer(timer: &str, due: u64) -> Ask {
    Ask::RescheduleTimer { timer: timer.into(), fire_at: at(due) }
}

pub(crate) fn condition() -> Condition {
    Condition { key: Some("paid".into()), fingerprint: Some("f1".into()) }
}

pub(crate) fn wait_spec(wait: &str, timer: Option<&str>) -> WaitSpec {
    let timer = timer.map(Into::into);
    WaitSpec { wait: wait.into(), condition: condition(), timer, details: None }
}

/// Opens a condition wait whose deadline is `timer`.
pub(crate) fn open_wait(wait: &str, timer: Option<&str>) -> Ask {
    Ask::OpenWait(wait_spec(wait, timer))
}

/// The deadline of a condition wait.
pub(crate) fn deadline(timer: &str, due: u64) -> Ask {
    let Condition { key, fingerprint } = condition();
    let origin = Origin::Condition { key, fingerprint };
    Ask::StartTimer(timer_spec(timer, at(due), Some(origin)))
}

/// An activity with a start-to-close timeout of 60 seconds and no retries.
pub(crate) fn activity_spec(activity: &str) -> ActivitySpec {
    ActivitySpec {
        activity: activity.into(),
        activity_type: "work".into(),
        queue: String::new(),
        input: Vec::new(),
        header: PayloadMap::new(),
        schedule_to_close: None,
        schedule_to_start: None,
        start_to_close: Some(seconds(60)),
        heartbeat: None,
        retry: None,
        delivery: Delivery::AtLeastOnce,
        retry_of: None,
        attempt: 0,
    }
}

pub(crate) fn activity(activity: &str) -> Ask {
    Ask::ScheduleActivity(activity_spec(activity))
}

pub(crate) fn child_spec(name: &str) -> ChildSpec {
    ChildSpec {
        workflow: workflow(name),
        spec: spec(),
        parent_close: ParentClosePolicy::default(),
        reuse: ReusePolicy::default(),
        retry_of: None,
        attempt: 0,
        recorded_retry: None,
    }
}

pub(crate) fn child(name: &str) -> Ask {
    Ask::StartChild(Box::new(child_spec(name)))
}

pub(crate) fn child_with(name: &str, parent_close: ParentClosePolicy) -> Ask {
    Ask::StartChild(Box::new(ChildSpec { parent_close, ..child_spec(name) }))
}

pub(crate) fn signal_external(name: &str) -> Ask {
    let (input, header) = (payloads("x"), PayloadMap::new());
    Ask::SignalExternal { target: target("other"), name: name.into(), input, header }
}

pub(crate) fn cancel_external(mode: CancelMode) -> Ask {
    Ask::CancelExternal { target: target("other"), mode, reason: "no longer needed".into() }
}

pub(crate) fn request(name: &str) -> UpdateRequest {
    UpdateRequest { name: name.into(), input: payloads("1"), ..UpdateRequest::default() }
}

pub(crate) fn accept(update: &str) -> Ask {
    Ask::AcceptUpdate { update: update.into(), request: request("set") }
}

pub(crate) fn reject(update: &str) -> Ask {
    Ask::RejectUpdate { update: update.into(), failure: failure("no") }
}

pub(crate) fn complete_update(update: &str) -> Ask {
    let outcome = UpdateOutcome::Completed(payloads("done"));
    Ask::CompleteUpdate { update: update.into(), outcome }
}

pub(crate) fn complete_run() -> Ask {
    Ask::CompleteRun(payloads("result"))
}

pub(crate) fn commands(asks: impl IntoIterator<Item = Ask>) -> Vec<Command> {
    asks.into_iter().map(Command::from).collect()
}
