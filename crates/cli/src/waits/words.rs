//! Waits in words for people, and as objects for programs.

use abide::Timestamp;
use abide_command::time::{absolute, relative};
use abide_core::{
    codec,
    event::WaitDetails,
    list::{WaitEnd, WaitKind, WaitRow},
    run::ShownWait,
};
use serde_json::{Map, Value, json};

use crate::output::{condition, mover, origin, payload, snake_case};

/// What the SDK puts before the id of a request to name its wait.
pub(super) const APPROVAL_PREFIX: &str = "approval:";

/// The end of a wait, relative to now and exactly.
pub(crate) fn until(at: Timestamp, now: Timestamp) -> String {
    if at.is_never() {
        "no deadline".into()
    } else {
        format!("{} ({})", relative(at, now), absolute(at))
    }
}

/// A count in words: `once`, `3 times`.
pub(crate) fn times(count: u32) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}

/// What the run waits for, in words.
pub(crate) fn waits_for(kind: WaitKind, name: &str) -> String {
    match kind {
        WaitKind::Timer => "time".into(),
        WaitKind::Signal if name.is_empty() => "any signal".into(),
        WaitKind::Signal => format!("signal {name}"),
        WaitKind::Condition if name.is_empty() => "condition".into(),
        WaitKind::Condition => format!("condition {name}"),
        WaitKind::ActivityRetry => "retry of an activity".into(),
        WaitKind::ChildRetry => format!("retry of child {name}"),
        WaitKind::Schedule => format!("next time of schedule {name}"),
        WaitKind::Approval if name.is_empty() => "approval".into(),
        WaitKind::Approval => {
            format!("approval {}", name.strip_prefix(APPROVAL_PREFIX).unwrap_or(name))
        }
    }
}

/// What would end the wait, in words.
pub(crate) fn ended_by(kind: WaitKind, name: &str, until: Timestamp) -> String {
    let end = |end| match end {
        WaitEnd::Time => "its time".into(),
        WaitEnd::Signal => waits_for(kind, name),
        WaitEnd::Condition => "its condition".into(),
        WaitEnd::Decision => "a decision".into(),
        WaitEnd::Deadline => "its deadline".to_owned(),
    };
    let ends = kind.ended_by(until).into_iter().map(end).collect::<Vec<_>>().join(" or ");
    if ends.is_empty() { "a change of the schedule".into() } else { ends }
}

/// One wait of a run, as JSON for programs.
pub(crate) fn object(wait: &ShownWait) -> Value {
    let (key, fingerprint) = condition(wait.origin.as_ref());
    let mut fields = json!({
        "wait": wait.key.to_string(), "kind": word(&wait.kind), "name": wait.name,
        "origin": wait.origin.as_ref().map(origin), "condition": key,
        "fingerprint": fingerprint, "since": wait.since.to_string(),
        "until": finite(wait.until), "ended_by": ends(wait.kind, wait.until),
        "timer": wait.timer.as_ref().map(|timer| timer.as_str()),
        "not_after": wait.guards.not_after.map(|at| at.to_string()),
        "max_extensions": wait.guards.max_extensions,
        "moves": wait.moves, "moved_by": wait.moved_by.as_ref().map(mover),
    });
    add_details(&mut fields, wait.details.as_ref());
    fields
}

/// A wait in a list, as JSON for programs.
pub(crate) fn row_object(row: &WaitRow) -> Value {
    let key = abide_core::run::WaitKey::from_bytes(&row.wait);
    let mut fields = json!({
        "workflow": row.workflow.as_str(), "run": row.run.to_string(), "type": row.workflow_type,
        "wait": key.map(|key| key.to_string()), "kind": word(&row.kind), "name": row.name,
        "since": row.since.to_string(), "until": finite(row.until),
        "ended_by": ends(row.kind, row.until),
        "timer": row.timer.as_ref().map(|timer| timer.as_str()),
    });
    add_details(&mut fields, details(row).as_ref());
    fields
}

/// Details for the person who must act. A row whose details are damaged is still worth showing.
pub(crate) fn details(row: &WaitRow) -> Option<WaitDetails> {
    codec::decode_wait_details(row.details.clone()).ok().flatten()
}

fn add_details(fields: &mut Value, details: Option<&WaitDetails>) {
    let (Some(details), Value::Object(fields)) = (details, fields) else { return };
    let data: Map<_, _> =
        details.data.iter().map(|(name, value)| (name.clone(), payload(value))).collect();
    fields.insert("subject".into(), details.subject.as_str().into());
    fields.insert("actors".into(), json!(details.actors));
    fields.insert("data".into(), data.into());
    if let Some(approval) = &details.approval {
        let approval = json!({
            "request": approval.request, "update": approval.update, "choices": approval.choices,
        });
        fields.insert("approval".into(), approval);
    }
}

fn ends(kind: WaitKind, until: Timestamp) -> Vec<String> {
    kind.ended_by(until).iter().map(word).collect()
}

fn finite(at: Timestamp) -> Option<String> {
    (!at.is_never()).then(|| at.to_string())
}

fn word(value: &impl std::fmt::Debug) -> String {
    snake_case(&format!("{value:?}"))
}
