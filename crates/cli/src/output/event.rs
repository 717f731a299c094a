//! The facts of an event as named values, for histories: the same for tables and JSON.

use std::time::Duration;

use abide_core::{
    event::{Condition, Fact, Mover, Origin, RunSpec, Target, UpdateOutcome},
    payload::PayloadMap,
};
use serde_json::{Map, Value, json};

use super::{
    blocked::blocked,
    failure,
    payload::{payload, payloads},
};

/// The facts of an event, by stable names. What is absent or empty is left out.
pub(crate) fn fields(fact: &Fact) -> Map<String, Value> {
    let Value::Object(mut fields) = all_fields(fact) else { return Map::new() };
    if let Some(Value::Object(spec)) = fields.get_mut("spec") {
        spec.retain(|_, value| said(value));
    }
    fields.retain(|_, value| said(value));
    fields
}

/// Whether the value is worth showing.
fn said(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

#[expect(clippy::too_many_lines, reason = "one arm per event, so that none can be forgotten")]
fn all_fields(fact: &Fact) -> Value {
    match fact {
        Fact::RunStarted(event) => run_started(event),
        Fact::RunCompleted(event) => {
            json!({ "result": payloads(&event.result), "next_run": shown(&event.next_run) })
        }
        Fact::RunFailed(event) => json!({
            "failure": failure(&event.failure), "retry_state": word(&event.retry_state),
            "next_run": shown(&event.next_run),
        }),
        Fact::RunTimedOut(event) => json!({
            "retry_state": word(&event.retry_state), "next_run": shown(&event.next_run),
        }),
        Fact::RunCancelRequested(event) => json!({
            "reason": event.reason, "identity": event.identity, "key": shown(&event.key),
        }),
        Fact::RunCancelled(event) => json!({ "details": payloads(&event.details) }),
        Fact::RunTerminated(event) => json!({
            "reason": event.reason, "identity": event.identity,
            "details": payloads(&event.details), "key": shown(&event.key),
            "next_run": shown(&event.reset.as_ref().map(|reset| reset.run)),
        }),
        Fact::RunContinuedAsNew(event) => {
            json!({ "next_run": event.next_run.to_string(), "spec": spec(&event.spec) })
        }
        Fact::RunPaused(event) => json!({
            "reason": event.reason, "identity": event.identity, "key": shown(&event.key),
        }),
        Fact::RunUnpaused(event) => json!({
            "reason": event.reason, "identity": event.identity, "key": shown(&event.key),
        }),
        Fact::TaskScheduled(event) => json!({ "queue": event.queue, "attempt": event.attempt }),
        Fact::TaskStarted(event) => {
            json!({ "scheduled": event.scheduled, "identity": event.identity })
        }
        Fact::TaskCompleted(event) => json!({
            "scheduled": event.scheduled, "started": event.started, "identity": event.identity,
            "build": shown(&event.build),
        }),
        Fact::TaskFailed(event) => json!({
            "scheduled": event.scheduled, "started": event.started, "cause": word(&event.cause),
            "failure": failure(&event.failure), "identity": event.identity,
            "build": shown(&event.build), "blocked": event.blocked.as_ref().map(blocked),
        }),
        Fact::TaskTimedOut(event) => {
            json!({ "scheduled": event.scheduled, "started": event.started })
        }
        Fact::ActivityScheduled(event) => json!({
            "activity": event.spec.activity.as_str(), "type": event.spec.activity_type,
            "queue": event.spec.queue, "input": payloads(&event.spec.input),
            "execution": event.execution.as_str(),
            "attempt": (event.spec.attempt > 1).then_some(event.spec.attempt),
            "start_to_close": seconds(event.spec.start_to_close),
            "schedule_to_close": seconds(event.spec.schedule_to_close),
            "heartbeat": seconds(event.spec.heartbeat),
        }),
        Fact::ActivityStarted(event) => json!({
            "scheduled": event.scheduled, "attempt": event.attempt, "at": event.at.to_string(),
            "identity": event.identity, "last_failure": event.last_failure.as_ref().map(failure),
        }),
        Fact::ActivityCompleted(event) => json!({
            "scheduled": event.scheduled, "result": payloads(&event.result),
            "identity": event.identity,
        }),
        Fact::ActivityFailed(event) => json!({
            "scheduled": event.scheduled, "failure": failure(&event.failure),
            "retry_state": word(&event.retry_state), "identity": event.identity,
        }),
        Fact::ActivityTimedOut(event) => json!({
            "scheduled": event.scheduled, "timeout": event.kind.to_string(),
            "failure": failure(&event.failure), "retry_state": word(&event.retry_state),
        }),
        Fact::ActivityCancelRequested(event) => json!({ "scheduled": event.scheduled }),
        Fact::ActivityCancelled(event) => {
            json!({ "scheduled": event.scheduled, "details": payloads(&event.details) })
        }
        Fact::TimerStarted(event) => {
            let (key, fingerprint) = condition(event.spec.origin.as_ref());
            json!({
                "timer": event.spec.timer.as_str(), "fire_at": event.spec.fire_at.to_string(),
                "origin": event.spec.origin.as_ref().map(origin),
                "condition": key, "fingerprint": fingerprint,
                "subject": event.spec.details.as_ref().map(|details| &details.subject),
            })
        }
        Fact::TimerRescheduled(event) => json!({
            "timer": event.timer.as_str(), "fire_at": event.fire_at.to_string(),
            "by": mover(&event.by), "key": mover_key(&event.by),
        }),
        Fact::TimerFired(event) => json!({
            "timer": event.timer.as_str(), "started": event.started,
            "fire_at": event.fire_at.to_string(),
        }),
        Fact::TimerCancelled(event) => {
            json!({ "timer": event.timer.as_str(), "started": event.started })
        }
        Fact::WaitOpened(event) => json!({
            "wait": event.spec.wait.as_str(), "condition": event.spec.condition.key,
            "fingerprint": event.spec.condition.fingerprint, "timer": shown(&event.spec.timer),
        }),
        Fact::WaitDescribed(event) => json!({
            "wait": event.wait.as_str(), "subject": event.details.subject,
            "actors": event.details.actors,
        }),
        Fact::WaitSatisfied(event) => ended(event.wait.as_str(), &event.condition),
        Fact::WaitTimedOut(event) => ended(event.wait.as_str(), &event.condition),
        Fact::WaitCancelled(event) => json!({ "wait": event.wait.as_str() }),
        Fact::SignalReceived(event) => json!({
            "name": event.name, "input": payloads(&event.input), "identity": event.identity,
            "key": shown(&event.key),
        }),
        Fact::UpdateAdmitted(event) => {
            json!({ "update": event.update.as_str(), "name": event.request.name })
        }
        Fact::UpdateAccepted(event) => json!({
            "update": event.update.as_str(), "name": event.request.name,
            "input": payloads(&event.request.input), "identity": event.request.identity,
        }),
        Fact::UpdateCompleted(event) => match &event.outcome {
            UpdateOutcome::Completed(result) => {
                json!({ "update": event.update.as_str(), "result": payloads(result) })
            }
            UpdateOutcome::Failed(why) => {
                json!({ "update": event.update.as_str(), "failure": failure(why) })
            }
        },
        Fact::ChildInitiated(event) => json!({
            "workflow": event.child.workflow.workflow.as_str(), "run": event.run.to_string(),
            "spec": spec(&event.child.spec), "parent_close": word(&event.child.parent_close),
        }),
        Fact::ChildStarted(event) => {
            json!({ "initiated": event.initiated, "run": event.run.to_string() })
        }
        Fact::ChildStartFailed(event) => {
            json!({ "initiated": event.initiated, "cause": word(&event.cause) })
        }
        Fact::ChildCompleted(event) => {
            json!({ "initiated": event.initiated, "result": payloads(&event.result) })
        }
        Fact::ChildFailed(event) => json!({
            "initiated": event.initiated, "failure": failure(&event.failure),
            "retry_state": word(&event.retry_state),
        }),
        Fact::ChildTimedOut(event) => {
            json!({ "initiated": event.initiated, "retry_state": word(&event.retry_state) })
        }
        Fact::ChildCancelled(event) => {
            json!({ "initiated": event.initiated, "details": payloads(&event.details) })
        }
        Fact::ChildTerminated(event) => {
            json!({ "initiated": event.initiated, "reason": event.reason })
        }
        Fact::ExternalSignalInitiated(event) => json!({
            "workflow": target(&event.target), "name": event.name,
            "input": payloads(&event.input),
        }),
        Fact::ExternalSignalDelivered(event) => json!({ "initiated": event.initiated }),
        Fact::ExternalSignalFailed(event) => {
            json!({ "initiated": event.initiated, "cause": word(&event.cause) })
        }
        Fact::ExternalCancelInitiated(event) => json!({
            "workflow": target(&event.target), "mode": word(&event.mode), "reason": event.reason,
        }),
        Fact::ExternalCancelDelivered(event) => json!({ "initiated": event.initiated }),
        Fact::ExternalCancelFailed(event) => {
            json!({ "initiated": event.initiated, "cause": word(&event.cause) })
        }
        Fact::MarkerRecorded(event) => {
            json!({ "kind": word(&event.marker.kind), "id": event.marker.id })
        }
        Fact::SearchAttributesUpserted(event) => json!({ "attributes": map(&event.attributes) }),
        Fact::MemoUpserted(event) => json!({ "memo": map(&event.memo) }),
    }
}

fn run_started(event: &abide_core::event::RunStarted) -> Value {
    json!({
        "run": event.run.to_string(), "spec": spec(&event.spec), "identity": event.identity,
        "key": shown(&event.key), "attempt": event.attempt,
        "previous": event.previous.as_ref().map(|previous| previous.run.to_string()),
        "parent": event.parent.as_ref().map(|parent| parent.run.workflow.workflow.as_str()),
    })
}

fn spec(spec: &RunSpec) -> Value {
    json!({
        "type": spec.workflow_type, "queue": spec.queue, "input": payloads(&spec.input),
        "run_timeout": seconds(spec.run_timeout),
        "execution_timeout": seconds(spec.execution_timeout), "cron": spec.cron,
    })
}

/// Why a timer or wait exists, in words.
pub(crate) fn origin(origin: &Origin) -> String {
    match origin {
        Origin::CreateTimer => "sleep".into(),
        Origin::ExternalEvent { name } if name.is_empty() => "any signal".into(),
        Origin::ExternalEvent { name } => format!("signal {name}"),
        Origin::Condition { key: Some(key), .. } => format!("condition {key}"),
        Origin::Condition { key: None, .. } => "condition".into(),
        Origin::ActivityRetry { execution } => format!("retry of activity {execution}"),
        Origin::ChildWorkflowRetry { workflow } => format!("retry of child {workflow}"),
    }
}

/// Who moved a due time.
pub(crate) fn mover(by: &Mover) -> &str {
    match by {
        Mover::Code => "code",
        Mover::Outside { identity, .. } => identity,
    }
}

/// Key and fingerprint of the condition that a timer or wait is about.
pub(crate) fn condition(origin: Option<&Origin>) -> (Option<&str>, Option<&str>) {
    match origin {
        Some(Origin::Condition { key, fingerprint }) => (key.as_deref(), fingerprint.as_deref()),
        Some(
            Origin::CreateTimer
            | Origin::ExternalEvent { .. }
            | Origin::ActivityRetry { .. }
            | Origin::ChildWorkflowRetry { .. },
        )
        | None => (None, None),
    }
}

/// The end of a wait for a condition.
fn ended(wait: &str, Condition { key, fingerprint }: &Condition) -> Value {
    json!({ "wait": wait, "condition": key, "fingerprint": fingerprint })
}

fn mover_key(by: &Mover) -> Option<&str> {
    match by {
        Mover::Code => None,
        Mover::Outside { key, .. } => key.as_ref().map(|key| key.as_str()),
    }
}

fn target(target: &Target) -> &str {
    target.workflow.workflow.as_str()
}

fn map(map: &PayloadMap) -> Value {
    map.iter().map(|(name, value)| (name.clone(), payload(value))).collect()
}

fn seconds(duration: Option<Duration>) -> Option<f64> {
    duration.map(|duration| duration.as_secs_f64())
}

fn shown(value: &Option<impl ToString>) -> Option<String> {
    value.as_ref().map(ToString::to_string)
}

/// The name of a plain variant in snake case.
fn word(value: &impl std::fmt::Debug) -> String {
    super::snake_case(&format!("{value:?}"))
}
