//! What is recorded of a schedule: what was asked of it, what it did, and how the runs that it
//! started ended.

use super::{Backfill, Overlap, PlannedStart, Schedule, ScheduledOutcome, ScheduledRun};
use crate::{digest::Digest, event::CancelMode, ids::Key, time::Timestamp};

/// The schedule was changed from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleChanged {
    pub at: Timestamp,
    pub identity: String,
    /// Idempotency key of the request.
    pub key: Option<Key>,
    /// Digest of the request, if it has a key.
    pub asked: Digest,
    pub change: ScheduleChange,
}

/// What can be asked of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleChange {
    /// Everything about it is replaced. What waits still starts.
    Updated(Box<Schedule>),
    /// Its times cause no starts.
    Paused {
        note: String,
    },
    Unpaused {
        note: String,
    },
    /// It starts now.
    Triggered {
        /// Instead of the schedule's own policy.
        overlap: Option<Overlap>,
    },
    /// It starts for each of its times in a span of the past.
    Backfilled {
        from: Timestamp,
        /// The last time that counts.
        to: Timestamp,
        /// Instead of the schedule's own policy.
        overlap: Option<Overlap>,
    },
}

/// What the schedule did. Lists are complete: they replace those of the state.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleStepped {
    pub considered: Timestamp,
    pub next: Option<PlannedStart>,
    pub wake_at: Timestamp,
    pub waiting: Vec<PlannedStart>,
    pub backfills: Vec<Backfill>,
    pub remaining: Option<u64>,
    /// Runs that it starts.
    pub started: Vec<ScheduledRun>,
    /// Runs whose end it requests.
    pub ending: Vec<EndRun>,
    /// How many starts it left out because an earlier run was open.
    pub skipped: u64,
    /// How many it left out because they were too late.
    pub missed: u64,
}

/// A run whose end is requested.
#[derive(Clone, Debug, PartialEq)]
pub struct EndRun {
    /// Number of its start.
    pub number: u64,
    pub mode: CancelMode,
}

/// A run that the schedule started has ended, or could not be started.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledRunEnded {
    /// Number of its start.
    pub number: u64,
    pub outcome: ScheduledOutcome,
}
