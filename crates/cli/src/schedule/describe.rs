//! `abide schedule describe`.

use abide_command::{
    Common, Failed, Table,
    time::{absolute, relative, system_now},
};
use abide_core::{
    operation::ScheduleDescription,
    schedule::{Schedule, ScheduleState, ScheduledOutcome, ScheduledRun, length},
};
use clap::Args;
use serde_json::{Value, json};

use super::{Target, overlap};
use crate::output::{payloads, snake_case};

/// Show a schedule: its times and policy, its last runs, and its next times
#[derive(Args)]
#[command(after_help = "Example:
  abide schedule describe report")]
pub(crate) struct Describe {
    #[command(flatten)]
    target: Target,
}

impl Describe {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let described = self.target.describe(&client).await?;
        let output = common.output();
        if output.json() {
            return output.object(&object(&self.target.id, &described));
        }
        output.lines(facts(&self.target.id, &described))?;
        let state = &described.state;
        if state.recent.is_empty() {
            Ok(())
        } else {
            output.lines(format_args!("\n{}", runs(state)))
        }
    }
}

fn facts(id: &str, described: &ScheduleDescription) -> Table {
    let now = system_now();
    let at = |at| format!("{} ({})", absolute(at), relative(at, now));
    let ScheduleDescription { state, next_times, .. } = described;
    let schedule = &state.schedule;
    let mut facts = vec![
        ("schedule", id.to_owned()),
        ("starts", format!("{} on queue {}", schedule.run.workflow_type, schedule.run.queue)),
        ("ids", format!("{}-TIME", schedule.workflow)),
        ("times", schedule.spec.summary()),
    ];
    facts.extend(schedule.spec.exclusions.iter().map(|except| ("except", except.to_string())));
    facts.extend(schedule.spec.start_at.map(|start| ("from", at(start))));
    facts.extend(schedule.spec.end_at.map(|end| ("until", at(end))));
    facts.extend(schedule.spec.jitter.map(|most| ("jitter", format!("up to {}", length(most)))));
    facts.push(("overlap", overlap::word(schedule.overlap()).into()));
    facts.push(("catch-up", length(schedule.catch_up())));
    if schedule.pause_on_failure {
        facts.push(("on failure", "pauses".into()));
    }
    facts.extend(schedule.remaining.map(|left| ("remaining", left.to_string())));
    facts.push(("state", if state.paused { "paused".into() } else { "active".into() }));
    if !state.note.is_empty() {
        facts.push(("note", state.note.clone()));
    }
    facts.push(("created", at(state.created_at)));
    facts.push(("changed", format!("{}, revision {}", at(state.changed_at), state.revision)));
    let ScheduleState { starts, skipped, missed, .. } = state;
    facts.push(("started", format!("{starts}, skipped {skipped}, missed {missed}")));
    facts.push(("open runs", state.running.len().to_string()));
    if !state.waiting.is_empty() {
        facts.push(("waiting", format!("{} starts", state.waiting.len())));
    }
    let names = std::iter::once("next").chain(std::iter::repeat(""));
    facts.extend(names.zip(next_times.iter().map(|next| at(*next))));
    Table::facts(facts)
}

fn runs(state: &ScheduleState) -> Table {
    let mut table = Table::new(["time", "started", "workflow", "outcome"]);
    for run in &state.recent {
        let outcome = run.outcome.as_ref().map_or_else(|| "open".into(), outcome);
        let (nominal, started) = (absolute(run.nominal), absolute(run.at));
        table.row([nominal, started, run.workflow.to_string(), outcome]);
    }
    table
}

fn outcome(outcome: &ScheduledOutcome) -> String {
    match outcome {
        ScheduledOutcome::Completed => "completed".into(),
        ScheduledOutcome::Failed { message } => format!("failed: {message}"),
        ScheduledOutcome::TimedOut => "timed out".into(),
        ScheduledOutcome::Cancelled => "cancelled".into(),
        ScheduledOutcome::Terminated => "terminated".into(),
        ScheduledOutcome::NotStarted { cause } => {
            format!("not started: {}", snake_case(&format!("{cause:?}")))
        }
    }
}

fn object(id: &str, described: &ScheduleDescription) -> Value {
    let ScheduleDescription { run, state, next_times, .. } = described;
    json!({
        "schedule": id, "run": run.to_string(), "paused": state.paused, "note": state.note,
        "revision": state.revision, "created_at": state.created_at.to_string(),
        "changed_at": state.changed_at.to_string(), "starts": state.starts,
        "skipped": state.skipped, "missed": state.missed, "waiting": state.waiting.len(),
        "definition": definition(&state.schedule),
        "next": next_times.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "running": state.running.iter().map(run_object).collect::<Vec<_>>(),
        "recent": state.recent.iter().map(run_object).collect::<Vec<_>>(),
    })
}

fn definition(schedule: &Schedule) -> Value {
    let spec = &schedule.spec;
    let intervals = spec.intervals.iter().map(|interval| {
        let offset = interval.offset.unwrap_or_default().as_secs();
        json!({ "every_seconds": interval.every.as_secs(), "offset_seconds": offset })
    });
    let texts = |calendars: &[abide_core::schedule::Calendar]| {
        calendars.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    json!({
        "type": schedule.run.workflow_type, "queue": schedule.run.queue,
        "workflow": schedule.workflow.as_str(), "input": payloads(&schedule.run.input),
        "cron": spec.cron, "calendars": texts(&spec.calendars),
        "intervals": intervals.collect::<Vec<_>>(), "exclusions": texts(&spec.exclusions),
        "time_zone": spec.time_zone, "start_at": spec.start_at.map(|at| at.to_string()),
        "end_at": spec.end_at.map(|at| at.to_string()),
        "jitter_seconds": spec.jitter.map(|jitter| jitter.as_secs_f64()),
        "overlap": overlap::word(schedule.overlap()),
        "catch_up_seconds": schedule.catch_up().as_secs(),
        "pause_on_failure": schedule.pause_on_failure, "remaining": schedule.remaining,
    })
}

fn run_object(run: &ScheduledRun) -> Value {
    json!({
        "time": run.nominal.to_string(), "started_at": run.at.to_string(),
        "workflow": run.workflow.as_str(), "run": run.run.to_string(),
        "outcome": run.outcome.as_ref().map(outcome),
    })
}
