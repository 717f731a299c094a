//! What runs do to other workflows. The source's outbox row stays until the answer is recorded; the
//! target's inbox row, written with the effect, answers repeats; some time after the source's
//! confirmation it is removed.
//! Effects of one run on one workflow go one after the other.

use abide_core::{
    call::CallError,
    codec,
    effect::{Action, Answer, Effect, StartChild},
    event::DeliveryFailure,
    ids::RunId,
    run::{Input, Refusal, Reply, StartRun},
    time::Timestamp,
};
use abide_store::{
    Write,
    rows::{InboxRow, OutboxRow},
};

use super::{Reading, Shard, Todo, start::child_may_start};
use crate::{
    alarm::Alarm,
    message::{EffectKey, Envelope, Fetch, Output},
};

/// An effect on its way.
#[derive(Debug)]
pub(super) struct Sending {
    key: EffectKey,
    effect: Effect,
    /// When it was sent last; none if it waits for its turn.
    sent_at: Option<Timestamp>,
    /// Its answer is recorded; only the target is still to be told.
    settled: bool,
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
            // An effect that cannot be read stays in the store for a version that can.
            let Ok(effect) = codec::decode_effect(row.effect) else { continue };
            let workflow =
                abide_core::ids::WorkflowKey { namespace: row.namespace, workflow: row.workflow };
            let key = EffectKey { workflow, run: row.run, number: row.number };
            let new = Sending { key, effect, sent_at: None, settled: false };
            self.sending.entry((row.run, row.number)).or_insert(new);
        }
        self.send_ready();
    }

    /// The run's effect is new, changed, or settled.
    pub(super) fn track_effect(&mut self, run: RunId, number: u64) {
        let Some(entry) = self.cache.peek(run) else { return };
        // Earlier ones may not have been read from the outbox yet, and they must go first.
        for (number, effect) in entry.run.outbox.range(..=number) {
            let workflow = entry.run.workflow.clone();
            let key = EffectKey { workflow, run, number: *number };
            let effect = effect.clone();
            let new = Sending { key, effect, sent_at: None, settled: false };
            self.sending.entry((run, *number)).or_insert(new);
        }
        if !entry.run.outbox.contains_key(&number)
            && let Some(sending) = self.sending.get_mut(&(run, number))
        {
            // While it is under way, its answer will still come and must be confirmed.
            sending.settled = true;
            if sending.sent_at.is_none() {
                self.sending.remove(&(run, number));
            }
        }
        self.send_next(run);
    }

    /// Sends an effect unless an earlier one of the run to the same workflow is not settled.
    fn send(&mut self, run: RunId, number: u64) {
        let Some(sending) = self.sending.get(&(run, number)) else { return };
        let target = &sending.effect.target.workflow;
        let earlier = self
            .sending
            .range((run, 0)..(run, number))
            .any(|(_, earlier)| earlier.effect.target.workflow == *target && !earlier.settled);
        if earlier || sending.settled || sending.sent_at.is_some() {
            return;
        }
        let shard = target.slot().shard();
        let envelope = Envelope { key: sending.key.clone(), effect: sending.effect.clone() };
        if let Some(sending) = self.sending.get_mut(&(run, number)) {
            sending.sent_at = Some(self.moment.now);
        }
        self.emit_after(run, Output::Deliver(shard, Box::new(envelope)));
        self.set_resend();
    }

    fn set_resend(&mut self) {
        if !self.resend_set {
            self.resend_set = true;
            let resend_at = self.now().saturating_add(self.limits.effect_timeout);
            self.alarms.set(resend_at, Alarm::Resend);
        }
    }

    fn send_next(&mut self, run: RunId) {
        let numbers: Vec<_> = self
            .sending
            .range((run, 0)..=(run, u64::MAX))
            .map(|((_, number), _)| *number)
            .collect();
        for number in numbers {
            self.send(run, number);
        }
    }

    fn send_ready(&mut self) {
        let keys: Vec<_> = self.sending.keys().copied().collect();
        for (run, number) in keys {
            self.send(run, number);
        }
    }

    /// No answer came for a while: the message or its answer was lost, or the target was reset.
    pub(super) fn resend(&mut self) {
        self.resend_set = false;
        let (now, timeout) = (self.now(), self.limits.effect_timeout);
        let overdue = |at: Timestamp| at.saturating_add(timeout) <= now;
        self.sending
            .retain(|_, sending| !(sending.settled && sending.sent_at.is_some_and(overdue)));
        for sending in self.sending.values_mut() {
            sending.sent_at = sending.sent_at.filter(|at| !overdue(*at));
        }
        self.send_ready();
        if !self.sending.is_empty() {
            self.set_resend();
        }
    }

    pub(super) fn effect_answered(&mut self, key: EffectKey, answer: Answer) {
        self.with_run(key.run, Todo::Answered(key, answer));
    }

    /// Records the answer and removes the outbox row in one batch, then confirms.
    pub(super) fn record_answer(&mut self, run: RunId, key: EffectKey, answer: Answer) {
        let number = key.number;
        let target = self
            .sending
            .get(&(run, number))
            .map(|sending| sending.effect.target.workflow.slot().shard());
        match self.decide(run, Input::EffectAnswered { number, answer }) {
            Ok(_) => {
                self.sending.remove(&(run, number));
                if let Some(target) = target {
                    self.emit_after(run, Output::Confirm(target, key));
                }
                self.send_next(run);
            }
            Err(error) if Self::busy(&error) => self.park_busy(run, Todo::Answered(key, answer)),
            Err(_) => {}
        }
    }

    /// The source has the answer. A repeat that was sent before may still be under way, so the answer
    /// is kept a little longer.
    pub(super) fn effect_confirmed(&mut self, key: &EffectKey) {
        let forget_at = self.now().saturating_add(self.limits.confirmed_retention);
        self.alarms.set(forget_at, Alarm::Forget(key.run, key.number));
    }

    pub(super) fn forget_effect(&mut self, source: RunId, number: u64) {
        self.pipeline.push(None, vec![Write::DeleteInbox { source, number }]);
    }

    /// Another run does something to a workflow of this shard: first, was it done before?
    pub(super) fn deliver(&mut self, envelope: Envelope) {
        if self.incoming.insert(envelope.key.clone()) {
            let fetch = Fetch::Inbox(envelope.key.run, envelope.key.number);
            self.fetch(Reading::Inbox(Box::new(envelope)), fetch);
        }
    }

    pub(super) fn inbox_read(&mut self, envelope: Envelope, row: Option<InboxRow>) {
        if let Some(row) = row {
            self.incoming.remove(&envelope.key);
            // An answer that only a newer version can read is left for it: the source asks again.
            if let Ok(answer) = codec::decode_answer(row.outcome) {
                self.emit(Output::Answer(envelope.key.shard(), envelope.key, answer));
            }
            return;
        }
        let target = envelope.effect.target.clone();
        let todo = Todo::Deliver(Box::new(envelope));
        match target.run {
            Some(run) => self.with_run(run, todo),
            None => self.with_head(&target.workflow, todo),
        }
    }

    /// There is no run to do it to. A child starts here.
    pub(super) fn deliver_nowhere(&mut self, envelope: Envelope) {
        match &envelope.effect.action {
            Action::StartChild(start) => {
                let start = (**start).clone();
                self.start_child(envelope, start, 1);
            }
            Action::Signal { .. } | Action::Cancel { .. } | Action::ChildClosed(_) => {
                self.answer_effect(None, envelope, Answer::Failed(DeliveryFailure::NotFound));
            }
        }
    }

    pub(super) fn deliver_to(&mut self, run: RunId, envelope: Envelope) {
        let Some(entry) = self.cache.peek(run) else { return };
        let target = &envelope.effect.target;
        if let Action::StartChild(start) = &envelope.effect.action {
            let start = (**start).clone();
            let free = child_may_start(&entry.run, start.child.reuse);
            let ordinal = entry.run.ordinal + 1;
            if entry.run.id == start.run || entry.run.first_run == start.run {
                return self.answer_effect(Some(run), envelope, Answer::Applied);
            }
            if !free {
                let answer = Answer::Failed(DeliveryFailure::AlreadyExists);
                return self.answer_effect(Some(run), envelope, answer);
            }
            return self.start_child(envelope, start, ordinal);
        }
        // A child that the source started by this event, whatever run of its chain is current.
        let is_child = target.child.is_none_or(|initiated| {
            let parent = entry.run.parent.as_ref();
            parent.is_some_and(|parent| {
                parent.run.run == envelope.key.run && parent.initiated == initiated
            })
        });
        if !is_child || entry.run.workflow != target.workflow {
            let answer = Answer::Failed(DeliveryFailure::NotFound);
            return self.answer_effect(Some(run), envelope, answer);
        }
        let source = envelope.key.source();
        let action = envelope.effect.action.clone();
        match self.decide(run, Input::Deliver { source, action }) {
            Ok(Reply::Delivered(answer)) => self.answer_effect(Some(run), envelope, answer),
            Err(CallError::Refused(Refusal::Limit(_))) => {
                let answer = Answer::Failed(DeliveryFailure::LimitExceeded);
                self.answer_effect(Some(run), envelope, answer);
            }
            Err(error) if Self::busy(&error) => {
                self.park_busy(run, Todo::Deliver(Box::new(envelope)));
            }
            // The source sends it again.
            Ok(_) | Err(_) => drop(self.incoming.remove(&envelope.key)),
        }
    }

    fn start_child(&mut self, envelope: Envelope, start: StartChild, ordinal: u64) {
        let run = start.run;
        self.begin(StartRun {
            ordinal,
            parent: Some(start.parent),
            root: Some(start.root),
            ..StartRun::new(start.child.workflow, run, start.child.spec)
        });
        self.answer_effect(Some(run), envelope, Answer::Applied);
    }

    /// Writes the answer in the batch of the effect, and sends it once that is durable.
    fn answer_effect(&mut self, run: Option<RunId>, envelope: Envelope, answer: Answer) {
        let row = InboxRow {
            source: envelope.key.run,
            number: envelope.key.number,
            at: self.now(),
            outcome: codec::encode_answer(&answer),
        };
        let batch = self.pipeline.push(run, vec![Write::PutInbox(row)]);
        let output = Output::Answer(envelope.key.shard(), envelope.key, answer);
        if let Some(entry) = run.and_then(|run| self.cache.get(run)) {
            entry.written_in = batch;
        }
        if let Some(output) = self.pipeline.after(batch, output) {
            self.release(output);
        }
    }
}
