//! Idempotency keys. A key is a field of the record that its input caused, so it is durable with it and
//! needs no table; each operation has keys of its own. They are remembered as long as the run is kept
//! and carried over to the runs that follow it. A repeat is answered and changes nothing, also when the
//! run has been closed since.
//!
//! Repairing has no key: it invents nothing, so doing it twice is doing it once.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Input, Run};
use crate::{
    event::{Fact, Mover, PreviousRun},
    ids::Key,
    limits::Limits,
};

/// Keys in order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Keys {
    in_order: Vec<Key>,
    known: BTreeSet<Key>,
}

impl Keys {
    /// These keys, oldest first.
    pub fn of(keys: &[Key]) -> Self {
        let mut known = Self::default();
        for key in keys {
            known.insert(key);
        }
        known
    }

    /// Remembers a key.
    pub fn insert(&mut self, key: &Key) {
        if self.known.insert(key.clone()) {
            self.in_order.push(key.clone());
        }
    }

    /// The key was seen.
    pub fn contains(&self, key: &Key) -> bool {
        self.known.contains(key)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.in_order.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.in_order.is_empty()
    }

    /// The newest keys that the next run takes over, oldest first.
    pub(super) fn carried(&self, limits: &Limits) -> Vec<Key> {
        newest(&self.in_order, limits, |key| key.as_str().len())
    }
}

/// The newest of what the next run takes over, as many and as large as may be, oldest first.
pub(super) fn newest<T: Clone>(
    in_order: &[T],
    limits: &Limits,
    size: impl Fn(&T) -> usize,
) -> Vec<T> {
    let mut room = limits.carried_key_bytes;
    let fits = |item: &&T| {
        let left = room.checked_sub(size(item));
        room = left.unwrap_or(0);
        left.is_some()
    };
    let count = in_order.iter().rev().take(limits.carried_keys).take_while(fits).count();
    in_order[in_order.len() - count..].to_vec()
}

impl Run {
    /// The input was taken before, by this run or by one that it follows.
    pub(super) fn took_before(&self, input: &Input) -> bool {
        let (known, key) = match input {
            Input::Signal(signal) => (&self.signal_keys, &signal.signal.key),
            Input::RescheduleTimer(reschedule) => (&self.reschedule_keys, &reschedule.key),
            Input::RequestCancel(request) => (&self.cancel_keys, &request.key),
            Input::Pause(paused) => (&self.pause_keys, &paused.key),
            Input::Unpause(unpaused) => (&self.unpause_keys, &unpaused.key),
            Input::Terminate(terminated) => {
                return terminated.key.is_some() && terminated.key == self.terminate_key;
            }
            Input::StartTask(_)
            | Input::CompleteTask(_)
            | Input::FailTask(_)
            | Input::TimeOutTask { .. }
            | Input::LoseTask { .. }
            | Input::Recover
            | Input::Repair { .. }
            | Input::AdmitUpdate { .. }
            | Input::StartActivity(_)
            | Input::ResolveActivity(_)
            | Input::Heartbeat { .. }
            | Input::DetachAttempt { .. }
            | Input::LoseAttempt { .. }
            | Input::Due { .. }
            | Input::Deliver { .. }
            | Input::EffectAnswered { .. } => return false,
        };
        key.as_ref().is_some_and(|key| known.contains(key))
    }

    /// Remembers the key of a fact, whether it is numbered or waits in the buffer.
    pub(super) fn remember_key(&mut self, fact: &Fact) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "other facts have no key of this kind")]
        let (known, key) = match fact {
            Fact::SignalReceived(signal) => (&mut self.signal_keys, &signal.key),
            Fact::RunCancelRequested(request) => (&mut self.cancel_keys, &request.key),
            Fact::RunPaused(paused) => (&mut self.pause_keys, &paused.key),
            Fact::RunUnpaused(unpaused) => (&mut self.unpause_keys, &unpaused.key),
            Fact::TimerRescheduled(moved) => match &moved.by {
                Mover::Outside { key, .. } => (&mut self.reschedule_keys, key),
                Mover::Code => return,
            },
            Fact::RunTerminated(terminated) => {
                self.terminate_key.clone_from(&terminated.key);
                return;
            }
            _ => return,
        };
        if let Some(key) = key {
            known.insert(key);
        }
    }

    /// Takes over the keys of the runs before.
    pub(super) fn inherit_keys(&mut self, previous: &PreviousRun) {
        self.signal_keys = Keys::of(&previous.signal_keys);
        self.reschedule_keys = Keys::of(&previous.reschedule_keys);
        self.cancel_keys = Keys::of(&previous.cancel_keys);
        self.pause_keys = Keys::of(&previous.pause_keys);
        self.unpause_keys = Keys::of(&previous.unpause_keys);
    }
}
