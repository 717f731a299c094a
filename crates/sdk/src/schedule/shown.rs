//! A schedule as clients are shown it.

use abide_core::{
    ids::{RunId, WorkflowId},
    operation, schedule,
    time::Timestamp,
};

use super::Schedule;
use crate::failure::DeliveryFailure;

/// A schedule and what it does.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScheduleDescription {
    /// Its id.
    pub id: String,
    /// What it starts, when, and under which policy.
    pub schedule: Schedule,
    /// Grows with each change from outside.
    pub revision: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub changed_at: Timestamp,
    /// Whether its times cause no starts at present.
    pub paused: bool,
    /// Why it is paused, or what was said when the pause ended.
    pub note: String,
    /// The next nominal times; while it is paused, what they would be.
    pub next_times: Vec<Timestamp>,
    /// Number of starts that wait for open runs to end.
    pub waiting: usize,
    /// Runs that it started and that are open.
    pub running: Vec<ScheduledRun>,
    /// The last runs that it started, oldest first.
    pub recent: Vec<ScheduledRun>,
    /// Starts that are left; any number if absent.
    pub remaining: Option<u64>,
    /// Number of starts so far.
    pub starts: u64,
    /// Number of starts left out because an earlier run was open.
    pub skipped: u64,
    /// Number of starts left out because they were later than the catch-up window allows.
    pub missed: u64,
}

/// A run that a schedule started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduledRun {
    /// The time for which it was started.
    pub nominal: Timestamp,
    /// When it was started.
    pub started_at: Timestamp,
    /// Its workflow id.
    pub workflow: WorkflowId,
    /// Its first run.
    pub run: RunId,
    /// How it ended; none while it is open.
    pub outcome: Option<ScheduledOutcome>,
}

/// How a run that a schedule started has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduledOutcome {
    /// It completed.
    Completed,
    /// It failed with this message.
    Failed(String),
    /// It exceeded its timeout.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// It was terminated.
    Terminated,
    /// It did not start, for this reason.
    NotStarted(DeliveryFailure),
}

/// A schedule in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleRow {
    /// Its id.
    pub id: String,
    /// Type of the workflows that it starts.
    pub workflow_type: String,
    /// Its times in short, for people.
    pub summary: String,
    /// Whether its times cause no starts at present.
    pub paused: bool,
    /// Why it is paused, or what was said when the pause ended.
    pub note: String,
    /// The nominal time of its next start.
    pub next: Option<Timestamp>,
    /// Number of open runs that it started.
    pub running: u32,
}

impl From<operation::ScheduleDescription> for ScheduleDescription {
    fn from(described: operation::ScheduleDescription) -> Self {
        let operation::ScheduleDescription { workflow, state, next_times, .. } = described;
        let runs = |runs: Vec<schedule::ScheduledRun>| runs.into_iter().map(Into::into).collect();
        Self {
            id: schedule::id_of(&workflow.workflow).unwrap_or_default().to_owned(),
            remaining: state.schedule.remaining,
            schedule: Schedule::from_core(state.schedule),
            revision: state.revision,
            created_at: state.created_at,
            changed_at: state.changed_at,
            paused: state.paused,
            note: state.note,
            next_times,
            waiting: state.waiting.len(),
            running: runs(state.running),
            recent: runs(state.recent),
            starts: state.starts,
            skipped: state.skipped,
            missed: state.missed,
        }
    }
}

impl From<schedule::ScheduledRun> for ScheduledRun {
    fn from(run: schedule::ScheduledRun) -> Self {
        let schedule::ScheduledRun { nominal, at, workflow, run, outcome, .. } = run;
        Self { nominal, started_at: at, workflow, run, outcome: outcome.map(Into::into) }
    }
}

impl From<schedule::ScheduledOutcome> for ScheduledOutcome {
    fn from(outcome: schedule::ScheduledOutcome) -> Self {
        match outcome {
            schedule::ScheduledOutcome::Completed => Self::Completed,
            schedule::ScheduledOutcome::Failed { message } => Self::Failed(message),
            schedule::ScheduledOutcome::TimedOut => Self::TimedOut,
            schedule::ScheduledOutcome::Cancelled => Self::Cancelled,
            schedule::ScheduledOutcome::Terminated => Self::Terminated,
            schedule::ScheduledOutcome::NotStarted { cause } => Self::NotStarted(cause.into()),
        }
    }
}

impl From<operation::ScheduleRow> for ScheduleRow {
    fn from(operation::ScheduleRow { workflow, listing }: operation::ScheduleRow) -> Self {
        let schedule::ScheduleListing { workflow_type, summary, paused, note, next, running } =
            listing;
        let id = schedule::id_of(&workflow.workflow).unwrap_or_default().to_owned();
        Self { id, workflow_type, summary, paused, note, next, running }
    }
}
