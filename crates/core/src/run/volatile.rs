//! What a shard knows of a run only in memory: the started task, updates that nobody accepted yet,
//! heartbeats that are not written. Losing it costs a repeat, never a fact.

use std::collections::{BTreeMap, BTreeSet};

use super::Touch;
use crate::{
    event::UpdateRequest,
    ids::{BuildId, EventNumber, SessionId, StartId, UpdateId},
    payload::Payloads,
    time::Timestamp,
};

/// The part of a run that does not survive a crash.
#[derive(Clone, Debug, Default)]
pub struct Volatile {
    /// The started workflow task.
    pub turn: Option<Turn>,
    /// The last task asked for another, and nothing else did.
    pub forced: bool,
    /// Updates that code has neither accepted nor rejected, in order of arrival.
    pub admitted: BTreeMap<UpdateId, Admitted>,
    /// Counts admissions, to keep their order.
    pub admissions: u64,
    /// Starts of the present task that were lost with their worker.
    pub lost_starts: u32,
    /// After lost starts, the task is not handed out before this.
    pub task_not_before: Option<Timestamp>,
    /// Last signs of life of running attempts.
    pub heartbeats: BTreeMap<EventNumber, Beat>,
    /// Signs of life before this moment could not be seen: silence counts from here.
    pub watched_since: Timestamp,
    /// What the last decisions changed, until [`super::Run::take_touched`].
    pub touched: BTreeSet<Touch>,
}

/// A sign of life of a running attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Beat {
    /// When.
    pub at: Timestamp,
    /// What the next attempt may go on from.
    pub details: Payloads,
}

/// An update that code has neither accepted nor rejected.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// Order of arrival.
    pub order: u64,
    /// What the caller asks for.
    pub request: UpdateRequest,
    /// A caller waits also while the run's code does not fit its history.
    pub wait_while_blocked: bool,
}

/// A started workflow task. It becomes TaskStarted when it closes.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Names the start.
    pub start: StartId,
    /// When it began, as the worker sees it.
    pub at: Timestamp,
    /// Whose session has it.
    pub session: SessionId,
    /// The worker.
    pub identity: String,
    /// The worker's code.
    pub build: Option<BuildId>,
    /// Which attempt.
    pub attempt: u32,
    /// The event that scheduled it; none if that is written with the close.
    pub scheduled: Option<EventNumber>,
    /// Updates that were handed out with it.
    pub updates: Vec<UpdateId>,
    /// Bytes of history then.
    pub history_bytes: u64,
    /// Code was advised to continue as new.
    pub suggest_continue_as_new: bool,
}

impl Volatile {
    /// Nothing would be lost by forgetting it.
    pub fn idle(&self) -> bool {
        self.turn.is_none()
            && self.admitted.is_empty()
            && self.heartbeats.is_empty()
            && self.task_not_before.is_none()
    }
}
