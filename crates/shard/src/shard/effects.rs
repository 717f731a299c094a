//! Incoming effects of other runs on workflows of this shard. The inbox row, written in the same
//! batch as the effect, makes delivery idempotent; it is deleted some time after the source has
//! confirmed the answer.

use abide_core::{
    codec,
    effect::{Action, EffectOutcome, StartChild},
    event::DeliveryFailure,
    ids::{Key, RunId},
    operation::CallError,
    run::{Input, Refusal, Reply, StartRun, Status},
    schedule,
};
use abide_store::{Write, rows::InboxRow};

use super::{Reading, Shard, Todo, expiry::Expiry, start::child_may_start};
use crate::{
    alarm::Alarm,
    message::{EffectKey, Envelope, Fetch, Mail, Notice, Output},
};

impl Shard {
    /// The source has the answer. A duplicate that was sent earlier may still be in flight, so the
    /// answer is kept a little longer.
    pub(super) fn effect_confirmed(&mut self, key: &EffectKey) {
        let forget_at = self.now().saturating_add(self.limits.confirmed_retention);
        let forget = Alarm::Forget(key.run, key.number, self.expiry.sweeps());
        self.memory.alarms.set(forget_at, forget);
    }

    /// Deletes an answer, unless only a clock that leapt ahead says that it is time.
    pub(super) fn forget_effect(&mut self, source: RunId, number: u64, confirmed_at: u64) {
        if self.expiry.sweeps() - confirmed_at < Expiry::sweeps_of_a_confirmation(&self.limits) {
            let again = self.now().saturating_add(self.limits.sweep_interval);
            return self.memory.alarms.set(again, Alarm::Forget(source, number, confirmed_at));
        }
        self.memory.pipeline.push(None, vec![Write::DeleteInbox { source, number }]);
    }

    /// Receives an effect on a workflow of this shard, and first looks for a recorded answer. An
    /// effect that no run can have caused is refused without a record or an outcome, because either
    /// would also answer the genuine effect of the same key.
    pub(super) fn deliver(&mut self, envelope: Envelope) {
        if !envelope.makes_sense() {
            let key = envelope.key;
            self.emit(Output::Notice(Notice::Senseless(Box::new(key.clone()))));
            return self.emit(Output::Mail(key.shard(), Mail::Senseless(key)));
        }
        if self.memory.incoming.insert(envelope.key.clone()) {
            let fetch = Fetch::Inbox(envelope.key.run, envelope.key.number);
            self.fetch(Reading::Inbox(Box::new(envelope)), fetch);
        }
    }

    pub(super) fn inbox_read(&mut self, envelope: Envelope, row: Option<InboxRow>) {
        if let Some(row) = row {
            self.memory.incoming.remove(&envelope.key);
            return match codec::decode_answer(row.outcome) {
                Ok(answer) => self.emit(answered(envelope.key, answer)),
                // The row stays for the newer version that wrote it; the source retries.
                Err(error) => {
                    let reason = format!("the answer to its effect {}: {error}", row.number);
                    self.emit(Output::Notice(Notice::Unreadable(row.source, reason)));
                }
            };
        }
        if !self.borders.admit(&envelope.key.workflow.namespace, &envelope.effect) {
            let answer = EffectOutcome::Failed(DeliveryFailure::NamespaceRefused);
            return self.answer_effect(None, envelope, answer);
        }
        let target = envelope.effect.target.clone();
        let todo = Todo::Deliver(Box::new(envelope));
        match target.run {
            Some(run) => self.with_run(run, todo),
            None => self.with_head(&target.workflow, todo),
        }
    }

    /// The target workflow has no run. A child starts; other effects fail.
    pub(super) fn deliver_nowhere(&mut self, envelope: Envelope) {
        match &envelope.effect.action {
            Action::StartChild(start) => {
                let start = (**start).clone();
                self.start_child(envelope, start, 1, (Vec::new(), Vec::new()));
            }
            Action::Signal { .. }
            | Action::Cancel { .. }
            | Action::ChildClosed(_)
            | Action::AdoptChild(_) => {
                self.answer_effect(
                    None,
                    envelope,
                    EffectOutcome::Failed(DeliveryFailure::NotFound),
                );
            }
        }
    }

    pub(super) fn deliver_to(&mut self, run: RunId, envelope: Envelope) {
        let Some(entry) = self.memory.cache.peek(run) else { return };
        let target = &envelope.effect.target;
        if let Action::StartChild(start) = &envelope.effect.action {
            let start = (**start).clone();
            let free = child_may_start(&entry.run, start.child.reuse);
            let ordinal = entry.run.ordinal + 1;
            if entry.run.id == start.run || entry.run.first_run == start.run {
                return self.answer_effect(Some(run), envelope, EffectOutcome::Applied);
            }
            if !free {
                let answer = EffectOutcome::Failed(DeliveryFailure::AlreadyExists);
                return self.answer_effect(Some(run), envelope, answer);
            }
            let keys = (entry.run.end_keys(&self.limits), entry.run.known_resets(&self.limits));
            return self.start_child(envelope, start, ordinal, keys);
        }
        if let Action::AdoptChild(adopt) = &envelope.effect.action {
            if let Status::Closed { next_run: Some(next), .. } = entry.run.status {
                return self.with_run(next, Todo::Deliver(Box::new(envelope)));
            }
            let is_child = entry.run.first_run == adopt.run
                && entry.run.parent.as_ref().is_some_and(|parent| {
                    parent.run.workflow == envelope.key.workflow
                        && parent.initiated == adopt.parent.initiated
                });
            if !is_child {
                let answer = EffectOutcome::Failed(DeliveryFailure::NotFound);
                return self.answer_effect(Some(run), envelope, answer);
            }
        }
        // Checks that the target is the child that the source started with this event, at any run
        // of its chain. If the source was made by a reset, the child may not know it yet. A schedule
        // numbers its starts over all its runs.
        let is_child = target.child.is_none_or(|initiated| {
            let parent = entry.run.parent.as_ref();
            parent.is_some_and(|parent| {
                let schedule = schedule::id_of(&parent.run.workflow.workflow).is_some();
                parent.run.workflow == envelope.key.workflow
                    && (schedule || parent.run.run <= envelope.key.run)
                    && parent.initiated == initiated
            })
        });
        if !is_child || entry.run.workflow != target.workflow {
            let answer = EffectOutcome::Failed(DeliveryFailure::NotFound);
            return self.answer_effect(Some(run), envelope, answer);
        }
        let source = envelope.key.source();
        let action = envelope.effect.action.clone();
        match self.decide(run, Input::Deliver { source, action }) {
            Ok(Reply::Delivered(answer)) => self.answer_effect(Some(run), envelope, answer),
            Err(CallError::Refused(Refusal::Limit(_))) => {
                let answer = EffectOutcome::Failed(DeliveryFailure::LimitExceeded);
                self.answer_effect(Some(run), envelope, answer);
            }
            Err(error) if Self::busy(&error) => {
                self.park_busy(run, Todo::Deliver(Box::new(envelope)));
            }
            // The source retries.
            Ok(_) | Err(_) => drop(self.memory.incoming.remove(&envelope.key)),
        }
    }

    fn start_child(
        &mut self,
        envelope: Envelope,
        start: StartChild,
        ordinal: u64,
        (terminate_keys, reset_keys): (Vec<Key>, Vec<Key>),
    ) {
        let run = start.run;
        if self.refusals.take_unstarted(run) {
            return self.answer_effect(
                None,
                envelope,
                EffectOutcome::Failed(DeliveryFailure::Refused),
            );
        }
        let child = StartRun {
            ordinal,
            attempt: start.child.attempt.max(1),
            parent: Some(start.parent),
            root: Some(start.root),
            terminate_keys,
            reset_keys,
            ..StartRun::new(start.child.workflow, run, start.child.spec)
        };
        self.begin(child.beginning(None, self.now()));
        self.answer_effect(Some(run), envelope, EffectOutcome::Applied);
    }

    /// Records the answer in the batch of the effect, and sends it once that batch is durable.
    fn answer_effect(&mut self, run: Option<RunId>, envelope: Envelope, answer: EffectOutcome) {
        let row = InboxRow {
            source: envelope.key.run,
            number: envelope.key.number,
            at: self.now(),
            outcome: codec::encode_answer(&answer),
        };
        let batch = self.memory.pipeline.push(run, vec![Write::PutInbox(row)]);
        let output = answered(envelope.key, answer);
        if let Some(entry) = run.and_then(|run| self.memory.cache.get(run)) {
            entry.written_in = batch;
        }
        if let Some(output) = self.memory.pipeline.after(batch, output) {
            self.release(output);
        }
    }
}

/// The mail that answers the source of an effect.
fn answered(key: EffectKey, answer: EffectOutcome) -> Output {
    Output::Mail(key.shard(), Mail::Answered(key, answer))
}
