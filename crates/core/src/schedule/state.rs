//! The state of a schedule, and how its records change it. Applying never fails and computes no time:
//! whatever depends on a calendar or a zone is in the record.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Overlap, Schedule,
    record::{EndRun, ScheduleChange, ScheduleChanged, ScheduleStepped, ScheduledRunEnded},
};
use crate::{
    event::{CancelMode, DeliveryFailure},
    ids::{RunId, WorkflowId},
    time::Timestamp,
};

/// Everything that is known of a schedule. It is carried over when its log begins again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleState {
    pub schedule: Schedule,
    /// Raised with each change from outside.
    pub revision: u64,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    pub paused: bool,
    /// Why it is paused, or what was said when the pause ended.
    pub note: String,
    /// All times up to this have been dealt with.
    pub considered: Timestamp,
    /// The start that its times cause next.
    pub next: Option<PlannedStart>,
    /// When it acts by itself; [`Timestamp::NEVER`] if only something from outside makes it act.
    pub wake_at: Timestamp,
    /// Starts that are due and wait for others to end.
    pub waiting: Vec<PlannedStart>,
    pub backfills: Vec<Backfill>,
    /// Runs that it started and that are open.
    pub running: Vec<ScheduledRun>,
    /// The last runs that it started, oldest first.
    pub recent: Vec<ScheduledRun>,
    /// Number of starts so far, which is the number of the last one.
    pub starts: u64,
    /// Number of starts left out because an earlier run was open.
    pub skipped: u64,
    /// Number of starts left out because they were too late.
    pub missed: u64,
}

/// A start that is due at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStart {
    /// The time that the calendar says.
    pub nominal: Timestamp,
    /// When it is due: the nominal time and its jitter.
    pub at: Timestamp,
    /// Instead of the schedule's own policy.
    pub overlap: Option<Overlap>,
    /// Whether it was asked for: a trigger or a backfill.
    pub manual: bool,
}

/// Times of the past that are made up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backfill {
    /// Times after this are still to come.
    pub after: Timestamp,
    /// The last time that counts.
    pub until: Timestamp,
    /// Instead of the schedule's own policy.
    pub overlap: Option<Overlap>,
}

/// A run that a schedule started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduledRun {
    /// Number of the start.
    pub number: u64,
    pub nominal: Timestamp,
    /// When it was started.
    pub at: Timestamp,
    pub workflow: WorkflowId,
    /// First run of the workflow.
    pub run: RunId,
    /// How its end was requested, if it was.
    pub ending: Option<CancelMode>,
    /// How it ended, once it has.
    pub outcome: Option<ScheduledOutcome>,
}

/// How a run that a schedule started has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScheduledOutcome {
    Completed,
    Failed { message: String },
    TimedOut,
    Cancelled,
    Terminated,
    NotStarted { cause: DeliveryFailure },
}

/// Starts that are shown as recent.
const RECENT: usize = 10;

/// Last moment before a time.
pub(super) fn just_before(at: Timestamp) -> Timestamp {
    at.saturating_sub(Duration::from_nanos(1))
}

impl ScheduleState {
    /// A schedule that has done nothing yet.
    pub(super) fn new(schedule: Schedule, now: Timestamp) -> Self {
        Self {
            schedule,
            revision: 1,
            created_at: now,
            changed_at: now,
            paused: false,
            note: String::new(),
            considered: now,
            next: None,
            wake_at: Timestamp::NEVER,
            waiting: Vec::new(),
            backfills: Vec::new(),
            running: Vec::new(),
            recent: Vec::new(),
            starts: 0,
            skipped: 0,
            missed: 0,
        }
    }

    pub(crate) fn apply_changed(&mut self, changed: &ScheduleChanged) {
        let at = changed.at;
        self.revision += 1;
        self.changed_at = at;
        match &changed.change {
            ScheduleChange::Updated(schedule) => {
                self.schedule = (**schedule).clone();
                // A start that its jitter still delays belongs to the new times, if these have it.
                let passed = self.next.map_or(at, |next| just_before(next.nominal).min(at));
                self.considered = self.considered.max(passed);
            }
            ScheduleChange::Paused { note } => {
                self.paused = true;
                self.note.clone_from(note);
            }
            // Times during the pause are not made up for.
            ScheduleChange::Unpaused { note } => {
                self.paused = false;
                self.note.clone_from(note);
                self.considered = self.considered.max(at);
            }
            ScheduleChange::Triggered { overlap } => self.trigger(at, *overlap),
            ScheduleChange::Backfilled { from, to, overlap } => {
                let after = just_before(*from);
                self.backfills.push(Backfill { after, until: *to, overlap: *overlap });
            }
        }
    }

    pub(super) fn trigger(&mut self, at: Timestamp, overlap: Option<Overlap>) {
        // To the millisecond: the time is part of an id that people read.
        let nominal = Timestamp::from_unix_millis(at.unix_millis());
        self.waiting.push(PlannedStart { nominal, at, overlap, manual: true });
    }

    pub(crate) fn apply_stepped(&mut self, step: &ScheduleStepped) {
        self.considered = step.considered;
        self.next = step.next;
        self.wake_at = step.wake_at;
        self.waiting.clone_from(&step.waiting);
        self.backfills.clone_from(&step.backfills);
        self.schedule.remaining = step.remaining;
        self.skipped += step.skipped;
        self.missed += step.missed;
        for run in &step.started {
            self.starts = run.number;
            self.running.push(run.clone());
            self.recent.push(run.clone());
        }
        for EndRun { number, mode } in &step.ending {
            let open = self.running.iter_mut().find(|run| run.number == *number);
            open.into_iter().for_each(|run| run.ending = Some(*mode));
        }
        let old = self.recent.len().saturating_sub(RECENT);
        self.recent.drain(..old);
    }

    pub(crate) fn apply_ended(&mut self, ended: &ScheduledRunEnded) {
        let number = ended.number;
        self.running.retain(|run| run.number != number);
        let known = self.recent.iter_mut().find(|run| run.number == number);
        known.into_iter().for_each(|run| run.outcome = Some(ended.outcome.clone()));
        if let Some(note) = self.pauses_because(&ended.outcome) {
            self.paused = true;
            self.note = note;
        }
    }

    fn pauses_because(&self, outcome: &ScheduledOutcome) -> Option<String> {
        let why = match outcome {
            _ if !self.schedule.pause_on_failure => return None,
            ScheduledOutcome::Failed { message } => format!("failed: {message}"),
            ScheduledOutcome::TimedOut => "timed out".to_owned(),
            ScheduledOutcome::Completed
            | ScheduledOutcome::Cancelled
            | ScheduledOutcome::Terminated
            | ScheduledOutcome::NotStarted { .. } => return None,
        };
        Some(format!("paused because a run {why}"))
    }
}
