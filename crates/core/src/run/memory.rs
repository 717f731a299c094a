//! How much memory a run takes, roughly: what users put into it counts, and a fixed amount for each
//! item. Bounds on buffers and caches use it; no decision that is recorded depends on it.

use super::{Activity, ActivityGiven, Admitted, Beat, GivenTask, KnownUpdate, Run};
use crate::{
    effect::{Action, Effect, RunOutcome},
    event::{ActivitySpec, Body, Fact, RunSpec, UpdateOutcome, UpdateRequest, WaitDetails},
    payload::{Size, extension_size, map_size, size},
};

/// Memory of a run, or of an item of it, beside user data: ids, names, times, nodes of maps.
const RUN: usize = 2_000;
const ITEM: usize = 500;
const KEY: usize = 150;

impl Run {
    /// Bytes of everything that its log holds too, so that they can be dropped and read again.
    pub fn memory(&self) -> usize {
        let details = |details: &Option<WaitDetails>| details.as_ref().map_or(0, WaitDetails::size);
        let timers = self.timers.values().map(|timer| ITEM + details(&timer.spec.details));
        let waits = self.waits.values().map(|wait| ITEM + details(&wait.spec.details));
        let activities = self.activities.values().map(|activity| activity.memory());
        let children = self.children.values().map(|child| ITEM + of_spec(&child.child.spec));
        let updates = self.updates.values().map(|update| ITEM + update.memory());
        let outbox = self.outbox.values().map(|effect| ITEM + of_effect(effect));
        let keys = self.snapshot_items() - self.timers.len() - self.waits.len();
        let last = self.last_result.as_deref().map_or(0, |result| size(result).memory());
        RUN + of_spec(&self.spec)
            + last
            + self.outcome.as_ref().map_or(0, of_outcome)
            + timers.chain(waits).chain(activities).sum::<usize>()
            + children.chain(updates).chain(outbox).sum::<usize>()
            + keys.saturating_mul(KEY)
            + self.buffered_memory()
    }

    /// Bytes of the inputs that wait for the end of a task.
    pub(super) fn buffered_memory(&self) -> usize {
        self.buffer.iter().map(of_body).sum()
    }

    /// Bytes of the updates that code has neither accepted nor rejected.
    pub fn admitted_memory(&self) -> usize {
        self.volatile.admitted.values().map(Admitted::memory).sum()
    }

    /// Bytes of the outcomes that are kept for repeats.
    pub(super) fn outcome_memory(&self) -> usize {
        self.updates.values().map(KnownUpdate::memory).sum()
    }

    /// Bytes of the inputs of pending activities.
    pub(super) fn pending_memory(&self) -> usize {
        self.activities.values().map(|activity| activity.spec.memory()).sum()
    }
}

impl Activity {
    fn memory(&self) -> usize {
        let failure = self.last_failure.as_ref().map(|failure| failure.size().memory());
        let heartbeat = self.heartbeat.as_ref().map(|details| size(details).memory());
        ITEM + self.spec.memory() + failure.unwrap_or(0) + heartbeat.unwrap_or(0)
    }
}

impl ActivitySpec {
    /// Bytes of its data.
    pub(super) fn memory(&self) -> usize {
        (size(&self.input) + map_size(&self.header)).memory()
    }
}

impl GivenTask {
    /// Bytes of what it brings along.
    pub fn memory(&self) -> usize {
        let tail = self.tail.iter().map(|event| of_body(&event.body));
        ITEM + tail.chain(self.updates.iter().map(|(_, it)| it.memory())).sum::<usize>()
    }
}

impl ActivityGiven {
    /// Bytes of what it brings along.
    pub fn memory(&self) -> usize {
        let heartbeat = self.heartbeat.as_ref().map_or(0, |details| size(details).memory());
        ITEM + self.spec.memory() + heartbeat
    }
}

impl Beat {
    /// Bytes of its details, and of itself.
    pub fn memory(&self) -> usize {
        ITEM + self.details.as_ref().map_or(0, |details| size(details).memory())
    }
}

impl Admitted {
    fn memory(&self) -> usize {
        ITEM + self.request.memory()
    }
}

impl KnownUpdate {
    fn memory(&self) -> usize {
        match self {
            Self::Admitted(request) => request.memory(),
            Self::Accepted { .. } => 0,
            Self::Completed { outcome: UpdateOutcome::Completed(result), .. } => {
                size(result).memory()
            }
            Self::Completed { outcome: UpdateOutcome::Failed(failure), .. }
            | Self::Rejected { failure, .. } => failure.size().memory(),
        }
    }
}

impl UpdateRequest {
    /// Bytes of its input and header.
    pub fn memory(&self) -> usize {
        (size(&self.input) + map_size(&self.header)).memory()
    }
}

fn of_spec(spec: &RunSpec) -> usize {
    let maps = map_size(&spec.header) + map_size(&spec.memo) + map_size(&spec.search_attributes);
    (size(&spec.input) + maps).memory()
}

fn of_effect(effect: &Effect) -> usize {
    match &effect.action {
        Action::StartChild(start) => of_spec(&start.child.spec),
        Action::Signal { input, header, .. } => (size(input) + map_size(header)).memory(),
        Action::Cancel { reason, .. } => reason.len(),
        Action::AdoptChild(_) => 0,
        Action::ChildClosed(closed) => of_outcome(&closed.outcome),
    }
}

fn of_outcome(outcome: &RunOutcome) -> usize {
    match outcome {
        RunOutcome::Completed(result) | RunOutcome::Cancelled(result) => size(result).memory(),
        RunOutcome::Failed { failure, .. } => failure.size().memory(),
        RunOutcome::TimedOut { .. } => 0,
        RunOutcome::Terminated { reason } => reason.len(),
    }
}

/// Bytes of a buffered input. One that was read from the store also keeps its bytes.
fn of_body(body: &Body) -> usize {
    let stored = body.stored().map_or(0, bytes::Bytes::len);
    ITEM + stored + (of_fact(&body.fact) + extension_size(&body.extension)).memory()
}

fn of_fact(fact: &Fact) -> Size {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other inputs are small")]
    match fact {
        Fact::SignalReceived(signal) => size(&signal.input) + map_size(&signal.header),
        Fact::ActivityCompleted(close) => size(&close.result),
        Fact::ActivityFailed(close) => close.failure.size(),
        Fact::ActivityTimedOut(close) => close.failure.size(),
        Fact::ActivityCancelled(close) => size(&close.details),
        Fact::ChildCompleted(close) => size(&close.result),
        Fact::ChildFailed(close) => close.failure.size(),
        Fact::ChildCancelled(close) => size(&close.details),
        _ => Size::default(),
    }
}
