//! `abide workflow describe`.

use abide_command::{
    Common, Failed, Table,
    time::{absolute, relative, system_now},
};
use abide_core::{
    effect::RunOutcome,
    run::{Description, ShownActivity, ShownPhase, ShownWait, TaskTrouble},
};
use clap::Args;
use serde_json::{Value, json};

use super::Target;
use crate::{
    output::{
        blocked, blocked_lines, failure, failure_lines, mover, origin, payload, payloads,
        snake_case,
    },
    waits::{ended_by, object as wait_object, times, until, waits_for},
};

/// Show a run: its status, waits, activities and children
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow describe order-7")]
pub(crate) struct Describe {
    #[command(flatten)]
    target: Target,
}

impl Describe {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let described = self.target.describe(&client).await;
        let run = described.map_err(|error| self.target.failed(error))?;
        let output = common.output();
        if output.json() {
            return output.object(&object(&run));
        }
        output.lines(facts(&run))?;
        if !run.waits.is_empty() {
            output.lines(format_args!("\n{}", waits(&run.waits)))?;
            run.waits.iter().filter_map(about).try_for_each(|about| output.line(about))?;
        }
        if !run.activities.is_empty() {
            output.lines(format_args!("\n{}", activities(&run.activities)))?;
        }
        for child in &run.children {
            let (id, kind) = (&child.workflow.workflow, &child.workflow_type);
            output.line("")?;
            output.line(format_args!("child {id} ({kind}), run {}", child.run))?;
        }
        match &run.trouble {
            Some(trouble) => output.lines(format_args!("\n{}", trouble_lines(trouble))),
            None => Ok(()),
        }
    }
}

fn facts(run: &Description) -> Table {
    let now = system_now();
    let at = |at| format!("{} ({})", absolute(at), relative(at, now));
    let mut facts = vec![
        ("workflow", run.workflow.workflow.to_string()),
        ("run", run.run.to_string()),
        ("type", run.workflow_type.clone()),
        ("queue", run.queue.clone()),
        ("status", word(&run.status)),
        ("doing", word(&run.liveness)),
    ];
    if !run.resume_sources.is_empty() {
        let sources: Vec<_> = run.resume_sources.iter().map(word).collect();
        facts.push(("resumed by", sources.join(", ")));
    }
    facts.push(("started", at(run.started_at)));
    facts.extend(run.begins_at.map(|begins| ("begins", at(begins))));
    facts.extend(run.closed_at.map(|closed| ("closed", at(closed))));
    facts.extend(run.deadline.map(|deadline| ("deadline", at(deadline))));
    if let Some(outcome) = &run.outcome {
        let names = std::iter::once("outcome").chain(std::iter::repeat(""));
        facts.extend(names.zip(outcome_text(outcome).split('\n').map(str::to_owned)));
    }
    facts.extend(run.next_run.map(|next| ("next run", next.to_string())));
    facts.extend(run.reset_from.map(|base| ("reset from", base.to_string())));
    if let Some(parent) = &run.parent {
        facts.push(("parent", parent.workflow.workflow.to_string()));
    }
    if run.cancel_requested {
        facts.push(("cancel", "requested".into()));
    }
    facts.push(("history", format!("{} events, {} bytes", run.last_event, run.history_bytes)));
    for (name, value) in &run.search_attributes {
        facts.push(("attribute", format!("{name} = {}", payload(value))));
    }
    for (name, value) in &run.memo {
        facts.push(("memo", format!("{name} = {}", payload(value))));
    }
    Table::facts(facts)
}

fn waits(waits: &[ShownWait]) -> Table {
    let now = system_now();
    let mut table = Table::new(["waits for", "origin", "since", "until", "ended by", "timer"]);
    for wait in waits {
        table.row([
            waits_for(wait.kind, &wait.name),
            wait.origin.as_ref().map_or_else(|| "unknown".into(), origin),
            relative(wait.since, now),
            until(wait.until, now),
            ended_by(wait.kind, &wait.name, wait.until),
            wait.timer.as_ref().map(ToString::to_string).unwrap_or_default(),
        ]);
    }
    table
}

/// What a wait is about, who may act, and what was done and may be done to its end, if any of it is
/// known.
fn about(wait: &ShownWait) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(details) = &wait.details {
        if !details.subject.is_empty() {
            parts.push(format!("is about {:?}", details.subject));
        }
        if !details.actors.is_empty() {
            let verb = if parts.is_empty() { "is for" } else { "for" };
            parts.push(format!("{verb} {}", details.actors.join(", ")));
        }
    }
    if let Some(not_after) = wait.guards.not_after {
        parts.push(format!("ends {} at the latest", absolute(not_after)));
    }
    if let Some(bound) = wait.guards.max_extensions {
        parts.push(format!("may be moved {}", times(bound)));
    }
    if let Some(by) = &wait.moved_by {
        parts.push(format!("was moved {} from outside, last by {}", times(wait.moves), mover(by)));
    }
    let what = waits_for(wait.kind, &wait.name);
    (!parts.is_empty()).then(|| format!("{what} {}", parts.join(", ")))
}

fn activities(activities: &[ShownActivity]) -> Table {
    let now = system_now();
    let mut table = Table::new(["activity", "attempt", "state", "last failure"]);
    for activity in activities {
        let stands = match &activity.phase {
            ShownPhase::Ready { since } => format!("ready since {}", relative(*since, now)),
            ShownPhase::Started { at, detached: true, .. } => {
                format!("started {}, detached", relative(*at, now))
            }
            ShownPhase::Started { at, identity, .. } => {
                format!("started {} by {identity}", relative(*at, now))
            }
            ShownPhase::Backoff { until } => format!("next attempt {}", relative(*until, now)),
        };
        table.row([
            format!("{} ({})", activity.activity_type, activity.activity),
            activity.attempt.to_string(),
            stands,
            activity.last_failure.as_ref().map(|last| last.message.clone()).unwrap_or_default(),
        ]);
    }
    table
}

pub(super) fn trouble_lines(trouble: &TaskTrouble) -> String {
    let mut text =
        format!("its code failed ({}): {}", word(&trouble.cause), failure_lines(&trouble.failure));
    if let Some(blocked) = &trouble.blocked {
        text.push_str(&blocked_lines(blocked));
    }
    text
}

pub(super) fn trouble_object(trouble: &TaskTrouble) -> Value {
    json!({
        "cause": word(&trouble.cause), "failure": failure(&trouble.failure),
        "attempt": trouble.attempt, "failed_at": trouble.failed_at.to_string(),
        "not_before": trouble.not_before.map(|at| at.to_string()),
        "blocked": trouble.blocked.as_ref().map(blocked),
    })
}

fn outcome_text(outcome: &RunOutcome) -> String {
    match outcome {
        RunOutcome::Completed(result) => payloads(result).to_string(),
        RunOutcome::Failed { failure, .. } => failure_lines(failure),
        RunOutcome::TimedOut { .. } => "timed out".into(),
        RunOutcome::Cancelled(_) => "cancelled".into(),
        RunOutcome::Terminated { reason } if reason.is_empty() => "terminated".into(),
        RunOutcome::Terminated { reason } => format!("terminated: {reason}"),
    }
}

fn object(run: &Description) -> Value {
    let (result, why) = match &run.outcome {
        Some(RunOutcome::Completed(result)) => (Some(payloads(result)), None),
        Some(RunOutcome::Failed { failure: why, .. }) => (None, Some(failure(why))),
        _ => (None, None),
    };
    let activity = |activity: &ShownActivity| {
        json!({
            "activity": activity.activity.as_str(), "type": activity.activity_type,
            "attempt": activity.attempt, "phase": phase(&activity.phase),
            "last_failure": activity.last_failure.as_ref().map(failure),
        })
    };
    let child = |child: &abide_core::run::ShownChild| {
        json!({
            "workflow": child.workflow.workflow.as_str(), "run": child.run.to_string(),
            "type": child.workflow_type, "started": child.started,
        })
    };
    json!({
        "workflow": run.workflow.workflow.as_str(), "run": run.run.to_string(),
        "type": run.workflow_type, "queue": run.queue, "status": word(&run.status),
        "doing": word(&run.liveness),
        "resume_sources": run.resume_sources.iter().map(word).collect::<Value>(),
        "started_at": run.started_at.to_string(),
        "begins_at": run.begins_at.map(|at| at.to_string()),
        "closed_at": run.closed_at.map(|at| at.to_string()),
        "deadline": run.deadline.map(|at| at.to_string()),
        "result": result, "failure": why,
        "next_run": run.next_run.map(|next| next.to_string()),
        "reset_from": run.reset_from.map(|base| base.to_string()),
        "parent": run.parent.as_ref().map(|parent| parent.workflow.workflow.as_str()),
        "cancel_requested": run.cancel_requested,
        "events": run.last_event, "history_bytes": run.history_bytes,
        "waits": run.waits.iter().map(wait_object).collect::<Value>(),
        "activities": run.activities.iter().map(activity).collect::<Value>(),
        "children": run.children.iter().map(child).collect::<Value>(),
        "updates": run.updates.iter().map(|id| id.as_str()).collect::<Value>(),
        "trouble": run.trouble.as_ref().map(trouble_object),
    })
}

const fn phase(phase: &ShownPhase) -> &'static str {
    match phase {
        ShownPhase::Ready { .. } => "ready",
        ShownPhase::Started { detached: true, .. } => "detached",
        ShownPhase::Started { .. } => "started",
        ShownPhase::Backoff { .. } => "backoff",
    }
}

fn word(value: &impl std::fmt::Debug) -> String {
    snake_case(&format!("{value:?}"))
}

#[cfg(test)]
mod tests {
    use abide_core::{
        digest::Digest,
        event::{Guards, Mover, WaitDetails},
        list::WaitKind,
        run::WaitKey,
        time::Timestamp,
    };

    use super::*;

    fn wait(details: Option<WaitDetails>) -> ShownWait {
        ShownWait {
            key: WaitKey::Timer("1".into()),
            kind: WaitKind::Signal,
            name: "go".into(),
            origin: None,
            timer: Some("1".into()),
            since: Timestamp::EPOCH,
            until: Timestamp::NEVER,
            guards: Guards::default(),
            moves: 0,
            moved_by: None,
            details,
        }
    }

    #[test]
    fn a_wait_says_only_what_there_is_to_say() {
        assert_eq!(about(&wait(None)), None);
        assert_eq!(about(&wait(Some(WaitDetails::default()))), None);
        let details = WaitDetails { actors: vec!["anna".into()], ..WaitDetails::default() };
        assert_eq!(about(&wait(Some(details))).unwrap(), "signal go is for anna");
    }

    #[test]
    fn people_see_how_the_end_was_and_may_be_moved() {
        let guards = Guards { not_after: Some(Timestamp::EPOCH), max_extensions: Some(1) };
        let moved_by = Some(Mover::Outside {
            identity: "anna".into(),
            key: None,
            received_at: Timestamp::EPOCH,
            asked: Digest::UNKNOWN,
        });
        let shown = about(&ShownWait { guards, moves: 2, moved_by, ..wait(None) }).unwrap();
        let expected = "signal go ends 1970-01-01 00:00:00Z at the latest, may be moved once, \
                        was moved 2 times from outside, last by ";
        assert!(shown.starts_with(expected), "{shown}");
    }
}
