//! Idempotency keys. A key is a field of the record that its input caused, so it is durable with
//! that record and needs no table; each operation has its own keys. They are kept as long as the
//! run, and passed on to the runs that continue it. A repeated request gets a reply and changes
//! nothing, even if the run has closed since. Keys of signals are stored with a digest of the
//! request, keys of reschedules with the timer and a digest of the time that was asked for: reusing
//! a key for another request is refused. The other operations have no content besides a reason. A
//! new run numbers its timers from the start, so what reschedules asked for is not passed on. The keys
//! of terminations, the newest of them, are passed on to every later run of the workflow id: a
//! terminated run has no run that continues it, and a repeat that names no run finds the next one.
//!
//! Repair has no key, because it is idempotent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Input, Movable, Refusal, RescheduleTimer, Run, WaitKey};
use crate::{
    codec,
    digest::Digest,
    event::{
        Fact, Mover, PreviousRun, RunCancelRequested, RunPaused, RunUnpaused, SignalReceived,
        TimerRescheduled,
    },
    ids::{Key, TimerId},
    limits::Limits,
    time::Timestamp,
};

/// Keys in order of arrival, each with what is known of its request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Keys<T = Digest> {
    in_order: Vec<Key>,
    known: BTreeMap<Key, T>,
}

/// A reschedule that the run has taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenMove {
    timer: TimerId,
    fire_at: Timestamp,
    asked: Digest,
}

impl TakenMove {
    /// Whether the request asks for something else. If its wait is over, its timer is not known.
    fn differs(&self, timer: Option<&TimerId>, asked: Digest) -> bool {
        timer.is_some_and(|timer| *timer != self.timer) || self.asked.differs(asked)
    }
}

impl<T: Clone + Default> Keys<T> {
    /// These keys, oldest first, with what is known of their requests.
    pub fn of(keys: &[Key], asked: &[T]) -> Self {
        let mut known = Self { in_order: Vec::new(), known: BTreeMap::new() };
        let asked = asked.iter().cloned().chain(std::iter::repeat(T::default()));
        for (key, asked) in keys.iter().zip(asked) {
            known.insert(key, asked);
        }
        known
    }

    /// Adds a key and what is known of its request.
    pub fn insert(&mut self, key: &Key, asked: T) {
        if self.known.insert(key.clone(), asked).is_none() {
            self.in_order.push(key.clone());
        }
    }

    /// What is known of the request with this key.
    pub fn known(&self, key: &Key) -> Option<&T> {
        self.known.get(key)
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
}

impl Keys {
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
            Input::ChangeSchedule(change) => (&self.signal_keys, &change.key),
            Input::RescheduleTimer(reschedule) => return self.is_repeated_move(reschedule),
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
            | Input::Heartbeat(_)
            | Input::DetachAttempt { .. }
            | Input::LoseAttempt { .. }
            | Input::AwaitAttempt { .. }
            | Input::PresentAttempt { .. }
            | Input::Due { .. }
            | Input::Deliver { .. }
            | Input::EffectAnswered { .. } => return Ok(false),
        };
        let Some((key, taken)) = key.as_ref().and_then(|key| known.known.get_key_value(key)) else {
            return Ok(false);
        };
        if taken.differs(asked(input)) {
            return Err(Refusal::KeyReused(key.clone()));
        }
        Ok(true)
    }

    fn is_repeated_move(&self, request: &RescheduleTimer) -> Result<bool, Refusal> {
        let Some(key) = request.key.as_ref().filter(|key| self.reschedule_keys.contains(key))
        else {
            return Ok(false);
        };
        let timer = match &request.what {
            Movable::Timer(timer) | Movable::Wait(WaitKey::Timer(timer)) => Some(timer),
            Movable::Wait(WaitKey::Condition(wait)) => {
                self.waits.get(wait).and_then(|wait| wait.spec.timer.as_ref())
            }
            Movable::Wait(WaitKey::Activity(_) | WaitKey::Begin | WaitKey::Schedule) => None,
        };
        let asked = Digest::of_due_time(request.fire_at, request.after);
        match self.taken_move(key) {
            Some(taken) if taken.differs(timer, asked) => Err(Refusal::KeyReused(key.clone())),
            _ => Ok(true),
        }
    }

    /// The due time that the reschedule with this key has set.
    pub fn moved_to(&self, key: &Key) -> Option<Timestamp> {
        self.taken_move(key).map(|taken| taken.fire_at)
    }

    fn taken_move(&self, key: &Key) -> Option<&TakenMove> {
        self.reschedule_keys.known.get(key)?.as_ref()
    }

    /// The newest keys of the terminations of this run and earlier ones of its workflow id, which the
    /// next run knows too, oldest first.
    pub fn end_keys(&self, limits: &Limits) -> Vec<Key> {
        let keys = self.earlier_terminate_keys.iter().chain(&self.terminate_key);
        let older = keys.clone().count().saturating_sub(limits.terminate_keys);
        keys.skip(older).cloned().collect()
    }

    /// Whether the request that names no run, but has this key, has already ended an earlier run.
    pub fn ended_earlier(&self, key: Option<&Key>) -> bool {
        key.is_some_and(|key| self.earlier_terminate_keys.contains(key))
    }

    /// Whether the run has taken this signal, according to its key.
    pub fn has_signal(&self, SignalReceived { name, input, key, .. }: &SignalReceived) -> bool {
        let taken = key.as_ref().and_then(|key| self.signal_keys.known.get(key));
        taken.is_some_and(|taken| !taken.differs(Digest::of_message(name, input)))
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
                fire_at,
                by: Mover::Outside { key: Some(key), asked, .. },
            }) => {
                let taken = TakenMove { timer: timer.clone(), fire_at: *fire_at, asked: *asked };
                self.reschedule_keys.insert(key, Some(taken));
                return;
            }
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

/// Digest of an input, if inputs of its kind have content and are known by a digest alone.
fn asked(input: &Input) -> Digest {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other inputs have no content")]
    match input {
        Input::Signal(input) => Digest::of_message(&input.signal.name, &input.signal.input),
        Input::ChangeSchedule(input) => codec::digest_of_change(&input.change),
        _ => Digest::UNKNOWN,
    }
}
