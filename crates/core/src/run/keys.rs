//! Idempotency keys. A key is a field of the record that its input caused, so it is durable with
//! that record and needs no table; each operation has its own keys. They are kept as long as the
//! run, and passed on to the runs that continue it. A repeated request gets a reply and changes
//! nothing, even if the run has closed since. Keys of signals and reschedules are stored with a
//! digest of the request: reusing a key for another request is refused. The other operations have
//! no content besides a reason. A new run numbers its timers from the start, so digests of
//! reschedules are not passed on.
//!
//! Repair has no key, because it is idempotent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Input, Movable, Refusal, RescheduleTimer, Run, WaitKey};
use crate::{
    digest::Digest,
    event::{
        Fact, Mover, PreviousRun, RunCancelRequested, RunPaused, RunUnpaused, SignalReceived,
        TimerRescheduled,
    },
    ids::Key,
    limits::Limits,
};

/// Keys in order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Keys {
    in_order: Vec<Key>,
    known: BTreeMap<Key, Digest>,
}

impl Keys {
    /// These keys, oldest first, with the digests of their requests as far as they are known.
    pub fn of(keys: &[Key], digests: &[Digest]) -> Self {
        let mut known = Self::default();
        let digests = digests.iter().copied().chain(std::iter::repeat(Digest::UNKNOWN));
        for (key, asked) in keys.iter().zip(digests) {
            known.insert(key, asked);
        }
        known
    }

    /// Adds a key and the digest of its request.
    pub fn insert(&mut self, key: &Key, asked: Digest) {
        if self.known.insert(key.clone(), asked).is_none() {
            self.in_order.push(key.clone());
        }
    }

    pub fn contains(&self, key: &Key) -> bool {
        self.known.contains_key(key)
    }

    pub fn len(&self) -> usize {
        self.in_order.len()
    }

    pub fn is_empty(&self) -> bool {
        self.in_order.is_empty()
    }

    /// The newest keys that the next run takes over, oldest first.
    pub(super) fn carried(&self, limits: &Limits) -> Vec<Key> {
        newest(&self.in_order, limits, |key| key.as_str().len())
    }

    /// Digests of the requests with these keys.
    pub(super) fn digests(&self, keys: &[Key]) -> Vec<Digest> {
        keys.iter().map(|key| self.known.get(key).copied().unwrap_or_default()).collect()
    }
}

/// The newest items that the next run takes over, within the limits, oldest first.
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
    /// Whether this run, or an earlier one of its chain, has already taken the input.
    pub(super) fn is_repeat(&self, input: &Input) -> Result<bool, Refusal> {
        let (known, key) = match input {
            Input::Signal(signal) => (&self.signal_keys, &signal.signal.key),
            Input::RescheduleTimer(reschedule) => (&self.reschedule_keys, &reschedule.key),
            Input::RequestCancel(request) => (&self.cancel_keys, &request.key),
            Input::Pause(paused) => (&self.pause_keys, &paused.key),
            Input::Unpause(unpaused) => (&self.unpause_keys, &unpaused.key),
            Input::Terminate(terminated) => {
                return Ok(terminated.key.is_some() && terminated.key == self.terminate_key);
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
            | Input::EffectAnswered { .. } => return Ok(false),
        };
        let Some((key, taken)) = key.as_ref().and_then(|key| known.known.get_key_value(key)) else {
            return Ok(false);
        };
        if taken.differs(self.asked(input)) {
            return Err(Refusal::KeyReused(key.clone()));
        }
        Ok(true)
    }

    /// Whether the run has taken this signal, according to its key.
    pub fn has_signal(&self, SignalReceived { name, input, key, .. }: &SignalReceived) -> bool {
        let taken = key.as_ref().and_then(|key| self.signal_keys.known.get(key));
        taken.is_some_and(|taken| !taken.differs(Digest::of_message(name, input)))
    }

    /// Digest of an input, if inputs of its kind have content.
    fn asked(&self, input: &Input) -> Digest {
        #[expect(clippy::wildcard_enum_match_arm, reason = "other inputs have no content")]
        match input {
            Input::Signal(input) => Digest::of_message(&input.signal.name, &input.signal.input),
            Input::RescheduleTimer(RescheduleTimer { what, .. }) => {
                let timer = match what {
                    Movable::Timer(timer) | Movable::Wait(WaitKey::Timer(timer)) => Some(timer),
                    Movable::Wait(WaitKey::Condition(wait)) => {
                        self.waits.get(wait).and_then(|wait| wait.spec.timer.as_ref())
                    }
                    Movable::Wait(WaitKey::Activity(_) | WaitKey::Begin) => None,
                };
                timer.map_or(Digest::UNKNOWN, Digest::of_move)
            }
            _ => Digest::UNKNOWN,
        }
    }

    /// Adds the key of a fact, whether it is numbered or buffered.
    pub(super) fn remember_key(&mut self, fact: &Fact) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "other facts have no key of this kind")]
        let (known, key, asked) = match fact {
            Fact::SignalReceived(SignalReceived { name, input, key: Some(key), .. }) => {
                (&mut self.signal_keys, key, Digest::of_message(name, input))
            }
            Fact::TimerRescheduled(TimerRescheduled {
                timer,
                by: Mover::Outside { key: Some(key), .. },
                ..
            }) => (&mut self.reschedule_keys, key, Digest::of_move(timer)),
            Fact::RunCancelRequested(RunCancelRequested { key: Some(key), .. }) => {
                (&mut self.cancel_keys, key, Digest::UNKNOWN)
            }
            Fact::RunPaused(RunPaused { key: Some(key), .. }) => {
                (&mut self.pause_keys, key, Digest::UNKNOWN)
            }
            Fact::RunUnpaused(RunUnpaused { key: Some(key), .. }) => {
                (&mut self.unpause_keys, key, Digest::UNKNOWN)
            }
            Fact::RunTerminated(terminated) => {
                self.terminate_key.clone_from(&terminated.key);
                return;
            }
            _ => return,
        };
        known.insert(key, asked);
    }

    /// Takes over the keys of earlier runs.
    pub(super) fn inherit_keys(&mut self, previous: &PreviousRun) {
        self.signal_keys = Keys::of(&previous.signal_keys, &previous.signal_digests);
        self.reschedule_keys = Keys::of(&previous.reschedule_keys, &[]);
        self.cancel_keys = Keys::of(&previous.cancel_keys, &[]);
        self.pause_keys = Keys::of(&previous.pause_keys, &[]);
        self.unpause_keys = Keys::of(&previous.unpause_keys, &[]);
    }
}
