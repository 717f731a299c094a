//! State of a run that a shard has only in memory: the started task, updates that code has not
//! accepted yet, unwritten heartbeats. Losing it costs a repetition, never a fact.

use std::collections::{BTreeMap, BTreeSet};

use super::Touch;
use crate::{
    event::UpdateRequest,
    ids::{BuildId, EventNumber, SessionId, StartId, UpdateId},
    payload::Payloads,
    time::Timestamp,
};

#[derive(Clone, Debug, Default)]
pub struct Volatile {
    pub turn: Option<StartedTask>,
    /// Whether the last task requested another one, and nothing else did.
    pub forced: bool,
    /// Updates that code has neither accepted nor rejected, in order of arrival.
    pub admitted: BTreeMap<UpdateId, Admitted>,
    /// Number of admissions so far, to keep their order.
    pub admissions: u64,
    /// Starts of the current task that were lost with their worker.
    pub lost_starts: u32,
    /// After lost starts: when the task is handed out again at the earliest.
    pub task_not_before: Option<Timestamp>,
    /// Last heartbeats of running attempts.
    pub heartbeats: UnwrittenBeats,
    /// Heartbeats before this time could not be received, so timeouts count from here.
    pub watched_since: Timestamp,
    /// Parts that the last decisions changed, until [`super::Run::take_touched`].
    pub touched: BTreeSet<Touch>,
}

/// A heartbeat of a running attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Beat {
    pub at: Timestamp,
    /// Progress from which the next attempt may resume. `None` if the last that was written is all there
    /// is.
    pub details: Option<Payloads>,
}

/// Last unwritten heartbeats of running attempts, by the number of the ActivityScheduled event.
#[derive(Clone, Debug, Default)]
pub struct UnwrittenBeats {
    beats: BTreeMap<EventNumber, Beat>,
    /// Bytes of memory of all of them.
    memory: usize,
}

impl UnwrittenBeats {
    pub fn get(&self, scheduled: EventNumber) -> Option<&Beat> {
        self.beats.get(&scheduled)
    }

    pub(super) fn insert(&mut self, scheduled: EventNumber, beat: Beat) {
        self.memory += beat.memory();
        let old = self.beats.insert(scheduled, beat);
        self.memory -= old.map_or(0, |old| old.memory());
    }

    pub(super) fn remove(&mut self, scheduled: EventNumber) -> Option<Beat> {
        let beat = self.beats.remove(&scheduled)?;
        self.memory -= beat.memory();
        Some(beat)
    }

    pub fn is_empty(&self) -> bool {
        self.beats.is_empty()
    }

    /// Bytes of memory of all of them.
    pub const fn memory(&self) -> usize {
        self.memory
    }
}

/// An update that code has neither accepted nor rejected.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// Order of arrival.
    pub order: u64,
    pub request: UpdateRequest,
    /// Whether a caller keeps waiting while the run is blocked.
    pub wait_while_blocked: bool,
}

/// A started workflow task. Its TaskStarted event is written when it closes.
#[derive(Clone, Debug, PartialEq)]
pub struct StartedTask {
    pub start: StartId,
    /// When it started by the clock; its timeout counts from here. The worker sees the time of history, which
    /// may be later, because time does not run backwards there.
    pub at: Timestamp,
    /// Session that holds it.
    pub session: SessionId,
    pub identity: String,
    pub build: Option<BuildId>,
    pub attempt: u32,
    /// Number of the TaskScheduled event; `None` if that is written with the close.
    pub scheduled: Option<EventNumber>,
    /// Updates that were handed out with it.
    pub updates: Vec<UpdateId>,
    /// Size of the history at that time.
    pub history_bytes: u64,
    /// Whether code was advised to continue as new.
    pub suggest_continue_as_new: bool,
}

impl Volatile {
    /// Whether nothing would be lost by dropping it.
    pub fn idle(&self) -> bool {
        self.turn.is_none()
            && self.admitted.is_empty()
            && self.heartbeats.is_empty()
            && self.task_not_before.is_none()
    }
}
