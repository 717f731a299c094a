//! Inputs that arrived while a task was started. They are durable as notes and mark what they will
//! close. When the task ends, they are checked again in order, and those that no longer apply are
//! dropped.

use super::{Run, Touch, draft::Draft};
use crate::{
    event::{Body, Fact},
    note::Note,
    time::Timestamp,
};

impl Run {
    /// Marks what a buffered input will do, so that a repeat of it is recognised.
    pub(super) fn apply_buffered(&mut self, body: &Body) {
        self.mark_buffered(&body.fact, true);
        self.remember_key(&body.fact);
        self.buffer.push(body.clone());
        self.touch(Touch::Task);
    }

    /// Clears the buffer and its marks; numbered inputs have been applied by their events.
    pub(super) fn release_buffer(&mut self) {
        for body in std::mem::take(&mut self.buffer) {
            self.mark_buffered(&body.fact, false);
        }
        self.touch(Touch::Task);
    }

    fn mark_buffered(&mut self, fact: &Fact, buffered: bool) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "most inputs leave no mark")]
        match fact {
            Fact::RunCancelRequested(_) if buffered => self.cancel_requested = true,
            Fact::RunPaused(_) | Fact::RunUnpaused(_) => self.touch(Touch::Run),
            Fact::TimerFired(fired) => self.mark_firing(&fired.timer, buffered),
            Fact::TimerRescheduled(moved) => {
                self.mark_moved(&moved.timer, buffered.then_some(moved.fire_at));
            }
            Fact::ActivityCompleted(close) => self.mark_closing(close.scheduled, buffered),
            Fact::ActivityFailed(close) => self.mark_closing(close.scheduled, buffered),
            Fact::ActivityTimedOut(close) => self.mark_closing(close.scheduled, buffered),
            Fact::ActivityCancelled(close) => self.mark_closing(close.scheduled, buffered),
            Fact::ChildStarted(_)
            | Fact::ChildStartFailed(_)
            | Fact::ChildCompleted(_)
            | Fact::ChildFailed(_)
            | Fact::ChildTimedOut(_)
            | Fact::ChildCancelled(_)
            | Fact::ChildTerminated(_)
            | Fact::ExternalSignalDelivered(_)
            | Fact::ExternalSignalFailed(_)
            | Fact::ExternalCancelDelivered(_)
            | Fact::ExternalCancelFailed(_)
                if buffered =>
            {
                self.mark_child(fact);
            }
            _ => {}
        }
    }

    /// Whether a buffered input still applies.
    fn applies(&self, fact: &Fact) -> bool {
        #[expect(clippy::wildcard_enum_match_arm, reason = "other inputs always apply")]
        match fact {
            Fact::TimerFired(fired) => {
                // A firing that code has overtaken by a later due time arms the timer again.
                self.timers.get(&fired.timer).is_some_and(|timer| {
                    timer.started == fired.started && fired.fire_at >= timer.spec.fire_at
                })
            }
            // The mark distinguishes the rescheduled timer from a new one with the same id.
            Fact::TimerRescheduled(moved) => {
                self.timers.get(&moved.timer).is_some_and(|timer| timer.moved_to.is_some())
            }
            Fact::ActivityStarted(started) => self.activities.contains_key(&started.scheduled),
            Fact::ActivityCompleted(close) => self.activities.contains_key(&close.scheduled),
            Fact::ActivityFailed(close) => self.activities.contains_key(&close.scheduled),
            Fact::ActivityTimedOut(close) => self.activities.contains_key(&close.scheduled),
            Fact::ActivityCancelled(close) => self.activities.contains_key(&close.scheduled),
            Fact::RunPaused(_) => !self.paused,
            Fact::RunUnpaused(_) => self.paused,
            _ => true,
        }
    }
}

/// Numbers the buffered inputs that still apply.
pub(super) fn release(draft: &mut Draft<'_>) {
    let buffer = draft.run.buffer.clone();
    if buffer.is_empty() {
        return;
    }
    let mut dropped = Vec::new();
    for body in buffer {
        if draft.run.applies(&body.fact) {
            draft.body_at(numbered_at(draft.now(), &body.fact), body);
        } else {
            dropped.push(body.fact.name().to_owned());
        }
    }
    draft.note(Note::BufferReleased { dropped });
}

/// A firing is never numbered before its due time, even if the clock was set back since it was
/// buffered.
fn numbered_at(now: Timestamp, fact: &Fact) -> Timestamp {
    if let Fact::TimerFired(fired) = fact { now.max(fired.fire_at) } else { now }
}

/// Stores buffered bodies in snapshots as the bytes of the log.
pub(super) mod stored {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use crate::{codec, event::Body};

    pub(crate) fn serialize<S: Serializer>(buffer: &[Body], to: S) -> Result<S::Ok, S::Error> {
        let bodies: Vec<Bytes> = buffer.iter().map(codec::encode_body).collect();
        bodies.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Body>, D::Error> {
        let bodies = Vec::<Bytes>::deserialize(from)?;
        bodies.into_iter().map(|body| codec::decode_body(body).map_err(D::Error::custom)).collect()
    }
}
