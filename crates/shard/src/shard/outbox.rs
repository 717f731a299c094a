//! Outgoing effects of runs of this shard on other workflows. The outbox row stays until the answer
//! is recorded; until then the effect is resent. Effects of one run on one workflow are sent one at
//! a time, in order.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    codec,
    effect::{Effect, EffectOutcome},
    event::DeliveryFailure,
    ids::{RunId, ShardId, WorkflowKey},
    run::Input,
    time::Timestamp,
};
use abide_store::rows::OutboxRow;

use super::{Reading, Shard, Todo};
use crate::{
    alarm::Alarm,
    message::{EffectKey, Envelope, Fetch, Mail, Notice, Output},
};

/// Effects without a recorded answer.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    effects: BTreeMap<(RunId, u64), Sending>,
    /// The unsettled effects of each run on each workflow: the first is sent, the others wait for
    /// it.
    lanes: BTreeMap<Lane, BTreeSet<u64>>,
    /// The resend alarm is set.
    resend_set: bool,
}

/// A source run and the target workflow.
type Lane = (RunId, WorkflowKey);

/// An effect without a recorded answer.
#[derive(Debug)]
struct Sending {
    key: EffectKey,
    effect: Effect,
    /// When the effect was last sent; none if it is not in flight.
    sent_at: Option<Timestamp>,
}

impl Outgoing {
    /// Adds an effect, unless it is known.
    fn add(&mut self, key: EffectKey, effect: Effect) {
        let (run, number) = (key.run, key.number);
        let lane = (run, effect.target.workflow.clone());
        self.effects.entry((run, number)).or_insert_with(|| {
            self.lanes.entry(lane).or_default().insert(number);
            Sending { key, effect, sent_at: None }
        });
    }

    /// The lane of an effect.
    fn lane(&self, run: RunId, number: u64) -> Option<Lane> {
        let sending = self.effects.get(&(run, number))?;
        Some((run, sending.effect.target.workflow.clone()))
    }

    /// The effect no longer blocks later ones. If it is in flight it stays until its answer
    /// arrives, which must be confirmed.
    fn settle(&mut self, run: RunId, number: u64) -> Option<Lane> {
        let lane = self.lane(run, number)?;
        let sending = self.effects.get(&(run, number))?;
        let under_way = sending.sent_at.is_some();
        if let Some(waiting) = self.lanes.get_mut(&lane) {
            waiting.remove(&number);
            if waiting.is_empty() {
                self.lanes.remove(&lane);
            }
        }
        if !under_way {
            self.effects.remove(&(run, number));
        }
        Some(lane)
    }

    /// The answer is recorded: drops the effect.
    fn remove(&mut self, run: RunId, number: u64) {
        self.settle(run, number);
        self.effects.remove(&(run, number));
    }

    /// Takes the first effect of a lane for sending, unless it is in flight.
    fn next(&mut self, lane: &Lane, now: Timestamp) -> Option<Envelope> {
        let number = *self.lanes.get(lane)?.first()?;
        let sending = self.effects.get_mut(&(lane.0, number))?;
        if sending.sent_at.is_some() {
            return None;
        }
        sending.sent_at = Some(now);
        Some(Envelope { key: sending.key.clone(), effect: sending.effect.clone() })
    }

    /// Marks effects whose answers are overdue as not in flight, at most `most` of those that will
    /// be resent; settled ones are dropped.
    fn give_up(&mut self, most: usize, overdue: impl Fn(Timestamp) -> bool) {
        let lanes = &self.lanes;
        let mut again = Vec::new();
        self.effects.retain(|(run, number), sending| {
            let Some(sent_at) = sending.sent_at.filter(|at| overdue(*at)) else { return true };
            let unsettled = waits(lanes, *run, *number, &sending.effect);
            if unsettled {
                again.push((sent_at, *run, *number));
            }
            unsettled
        });
        self.take_back(most, again);
    }

    /// Marks effects on these shards as not in flight, at most `most` of them.
    fn lose(&mut self, most: usize, shards: &BTreeSet<ShardId>) {
        let lost = self.effects.iter().filter_map(|((run, number), sending)| {
            let lost = shards.contains(&sending.effect.target.workflow.slot().shard())
                && waits(&self.lanes, *run, *number, &sending.effect);
            Some((sending.sent_at.filter(|_| lost)?, *run, *number))
        });
        let lost = lost.collect();
        self.take_back(most, lost);
    }

    /// Marks effects as not in flight: at most `most`, the ones that were sent longest ago.
    fn take_back(&mut self, most: usize, mut sent: Vec<(Timestamp, RunId, u64)>) {
        sent.sort_unstable();
        for (_, run, number) in sent.into_iter().take(most) {
            if let Some(sending) = self.effects.get_mut(&(run, number)) {
                sending.sent_at = None;
            }
        }
    }
}

/// Whether the effect is not settled: its run waits for the answer.
fn waits(lanes: &BTreeMap<Lane, BTreeSet<u64>>, run: RunId, number: u64, effect: &Effect) -> bool {
    let lane = (run, effect.target.workflow.clone());
    lanes.get(&lane).is_some_and(|waiting| waiting.contains(&number))
}

impl Shard {
    pub(super) fn scan_outbox(&mut self, after: Option<(RunId, u64)>) {
        self.fetch(Reading::Outbox, Fetch::Outbox(after, self.limits.page_rows));
    }

    pub(super) fn outbox_read(&mut self, rows: Vec<OutboxRow>) {
        if rows.len() >= self.limits.page_rows {
            self.scan_outbox(rows.last().map(|row| (row.run, row.number)));
        }
        for row in rows {
            let effect = match codec::decode_effect(row.effect) {
                Ok(effect) => effect,
                // The row stays in the store for a version that can decode it.
                Err(error) => {
                    let reason = format!("its effect {}: {error}", row.number);
                    self.emit(Output::Notice(Notice::Unreadable(row.run, reason)));
                    continue;
                }
            };
            let workflow = WorkflowKey { namespace: row.namespace, workflow: row.workflow };
            let key = EffectKey { workflow, run: row.run, number: row.number };
            self.memory.outgoing.add(key, effect);
        }
        self.send_ready();
    }

    /// Updates the tracking of an effect that is new, changed or settled.
    pub(super) fn track_effect(&mut self, run: RunId, number: u64) {
        let Some(entry) = self.memory.cache.peek(run) else { return };
        if !entry.run.outbox.contains_key(&number) {
            if let Some(lane) = self.memory.outgoing.settle(run, number) {
                self.send_next(&lane);
            }
            return;
        }
        // Earlier effects may not have been read from the outbox yet, and must be sent first. If
        // one is known, all before it are.
        let unknown = entry.run.outbox.range(..=number).rev();
        let unknown = unknown
            .take_while(|(number, _)| !self.memory.outgoing.effects.contains_key(&(run, **number)));
        let unknown: Vec<_> = unknown.map(|(number, effect)| (*number, effect.clone())).collect();
        let workflow = entry.run.workflow.clone();
        for (number, effect) in unknown.into_iter().rev() {
            let lane = (run, effect.target.workflow.clone());
            let key = EffectKey { workflow: workflow.clone(), run, number };
            self.memory.outgoing.add(key, effect);
            self.send_next(&lane);
        }
    }

    /// Sends the next effect of a lane, unless one is in flight.
    fn send_next(&mut self, lane: &Lane) {
        let Some(envelope) = self.memory.outgoing.next(lane, self.moment.now) else { return };
        let shard = envelope.effect.target.workflow.slot().shard();
        self.emit_after(lane.0, Output::Mail(shard, Mail::Deliver(Box::new(envelope))));
        self.set_resend();
    }

    fn send_ready(&mut self) {
        let lanes: Vec<_> = self.memory.outgoing.lanes.keys().cloned().collect();
        for lane in lanes {
            self.send_next(&lane);
        }
    }

    fn set_resend(&mut self) {
        if !self.memory.outgoing.resend_set {
            self.memory.outgoing.resend_set = true;
            let resend_at = self.now().saturating_add(self.limits.effect_timeout);
            self.memory.alarms.set(resend_at, Alarm::Resend);
        }
    }

    /// Resends effects without an answer: the message or its answer was lost, or the target was
    /// reset.
    pub(super) fn resend(&mut self) {
        self.memory.outgoing.resend_set = false;
        let (now, timeout) = (self.now(), self.limits.effect_timeout);
        let most = self.limits.resent_effects;
        self.memory.outgoing.give_up(most, |sent_at| sent_at.saturating_add(timeout) <= now);
        self.send_ready();
        if !self.memory.outgoing.effects.is_empty() {
            self.set_resend();
        }
    }

    /// Mail to these shards, or their answers, may be lost: resends at once instead of waiting for
    /// the timeout.
    pub(super) fn send_again(&mut self, shards: &BTreeSet<ShardId>) {
        self.memory.outgoing.lose(self.limits.resent_effects, shards);
        self.send_ready();
    }

    pub(super) fn effect_answered(&mut self, key: EffectKey, answer: EffectOutcome) {
        self.with_run(key.run, Todo::Answered(key, answer));
    }

    /// The target could make no sense of an effect. If the effect is sound here, it was garbled on its
    /// way, or did not come from here: it stays in flight, and is resent like one that was lost.
    pub(super) fn effect_senseless(&mut self, key: EffectKey) {
        let wrong =
            self.memory.outgoing.effects.get(&(key.run, key.number)).is_some_and(|sending| {
                let Sending { key, effect, .. } = sending;
                !Envelope { key: key.clone(), effect: effect.clone() }.makes_sense()
            });
        if wrong {
            self.effect_answered(key, EffectOutcome::Failed(DeliveryFailure::Refused));
        }
    }

    /// Records the answer and removes the outbox row in one batch, then confirms.
    pub(super) fn record_answer(&mut self, run: RunId, key: EffectKey, answer: EffectOutcome) {
        let number = key.number;
        let lane = self.memory.outgoing.lane(run, number);
        match self.decide(run, Input::EffectAnswered { number, answer }) {
            Ok(_) => {
                self.memory.outgoing.remove(run, number);
                if let Some(lane) = lane {
                    let confirmed = Mail::Confirmed(key);
                    self.emit_after(run, Output::Mail(lane.1.slot().shard(), confirmed));
                    self.send_next(&lane);
                }
            }
            Err(error) if Self::busy(&error) => self.park_busy(run, Todo::Answered(key, answer)),
            Err(_) => {}
        }
    }
}
