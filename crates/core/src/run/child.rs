//! Children and external requests: what this run does to other workflows (outbox), their answers,
//! and what others do to this run.
//!
//! | child | input | becomes |
//! |---|---|---|
//! | none | StartChild | initiated, with an effect in the outbox |
//! | initiated | answer: applied | started |
//! | initiated | answer: failed | gone: start failed |
//! | initiated | the child closed | started, then gone: the close arrived before the answer |
//! | started | the child closed | gone |

use super::{
    Child, Context, Decision, Input, Refusal, Reply, Run, Signal, Touch, cancel, draft::Draft,
    reset,
};
use crate::{
    effect::{Action, AdoptChild, ChildClosed, Effect, EffectOutcome, RunOutcome, StartChild},
    event::{
        Body, CancelMode, ChildCancelled, ChildCompleted, ChildFailed, ChildInitiated, ChildSpec,
        ChildStartFailed, ChildStarted, ChildTerminated, ChildTimedOut, DeliveryFailure, Event,
        ExternalCancelDelivered, ExternalCancelFailed, ExternalSignalDelivered,
        ExternalSignalFailed, Fact, Parent, RunCancelRequested, RunReference, RunTerminated,
        SignalReceived, Target,
    },
    failure::{Failure, TimeoutKind},
    ids::EventNumber,
    note::Note,
    payload::Extension,
    retry::{RetryDecision, RetryState},
};

/// Applies an effect of another run to this one.
pub(super) fn deliver(
    mut draft: Draft<'_>,
    source: RunReference,
    action: Action,
) -> Result<Decision, Refusal> {
    let received_at = draft.now();
    let source = Some(source);
    match action {
        Action::Signal { name, input, header } => {
            let signal =
                SignalReceived { name, input, header, source, received_at, ..Default::default() };
            let extension = Extension::new();
            let mut decision = super::signal::receive(draft, Signal { signal, extension })?;
            decision.reply = Reply::Delivered(EffectOutcome::Applied);
            return Ok(decision);
        }
        Action::Cancel { mode: CancelMode::Request, reason } => {
            if !draft.run.cancel_requested {
                draft.buffer_room()?;
                let request =
                    RunCancelRequested { reason, source, received_at, ..Default::default() };
                cancel::take_request(&mut draft, request);
            }
        }
        Action::Cancel { mode: CancelMode::Terminate, reason } => {
            cancel::end_from_outside(&mut draft);
            draft.event(RunTerminated { reason, ..RunTerminated::default() });
        }
        Action::ChildClosed(closed) => {
            draft.buffer_room()?;
            close_child(&mut draft, closed);
        }
        Action::AdoptChild(AdoptChild { parent, .. }) => reset::adopt(&mut draft, parent),
        Action::StartChild(_) => {
            let answer = EffectOutcome::Failed(DeliveryFailure::AlreadyExists);
            return Ok(draft.finish(Reply::Delivered(answer)));
        }
    }
    Ok(draft.finish(Reply::Delivered(EffectOutcome::Applied)))
}

fn close_child(draft: &mut Draft<'_>, closed: ChildClosed) {
    let ChildClosed { initiated, first_run, run, outcome } = closed;
    let Some(child) = draft.run.children.get(&initiated).filter(|child| !child.closing) else {
        return;
    };
    let started = (!child.started).then(|| Body::new(ChildStarted { initiated, run: first_run }));
    let closed: Fact = match outcome {
        RunOutcome::Completed(result) => ChildCompleted { initiated, run, result }.into(),
        RunOutcome::Failed { failure, retry_state } => {
            let retry_state = recorded_retry(&child.child, &failure).unwrap_or(retry_state);
            ChildFailed { initiated, run, failure, retry_state }.into()
        }
        RunOutcome::TimedOut { retry_state } => {
            let failure = Failure::timeout(TimeoutKind::StartToClose);
            let retry_state = recorded_retry(&child.child, &failure).unwrap_or(retry_state);
            ChildTimedOut { initiated, run, retry_state }.into()
        }
        RunOutcome::Cancelled(details) => ChildCancelled { initiated, run, details }.into(),
        RunOutcome::Terminated { reason } => ChildTerminated { initiated, run, reason }.into(),
    };
    draft.input_bodies(started.into_iter().chain([Body::new(closed)]));
}

/// State of the retries that this run makes of its child; none if it makes none.
fn recorded_retry(child: &ChildSpec, failure: &Failure) -> Option<RetryState> {
    let policy = child.recorded_retry.as_ref()?;
    Some(match policy.judge(child.attempt.max(1), failure) {
        RetryDecision::After(_) => RetryState::InProgress,
        RetryDecision::Stop(state) => state,
    })
}

/// Records the answer to an effect of this run.
pub(super) fn answered(
    mut draft: Draft<'_>,
    number: u64,
    answer: EffectOutcome,
) -> Result<Decision, Refusal> {
    let Some(effect) = draft.run.outbox.get(&number) else {
        return Ok(draft.finish(Reply::Repeat));
    };
    match draft.run.answer_fact(effect, answer) {
        Some(fact) => {
            draft.buffer_room()?;
            draft.input(fact);
        }
        None => {
            draft.note(Note::EffectSettled { number, delivered: answer == EffectOutcome::Applied })
        }
    }
    Ok(draft.finish(Reply::Done))
}

/// A closed run still records the answers to its effects; it refuses everything else.
pub(super) fn decide_closed(
    run: &mut Run,
    context: &Context<'_>,
    input: Input,
) -> Result<Decision, Refusal> {
    let mut draft = Draft::new(run, context);
    #[expect(clippy::wildcard_enum_match_arm, reason = "a closed run refuses everything else")]
    match input {
        Input::EffectAnswered { number, answer } if draft.run.outbox.contains_key(&number) => {
            draft.note(Note::EffectSettled { number, delivered: answer == EffectOutcome::Applied });
            Ok(draft.finish(Reply::Done))
        }
        Input::EffectAnswered { .. } => Ok(draft.finish(Reply::Repeat)),
        Input::AdmitUpdate { update, request, .. } => {
            match draft.run.asked_before(&update, &request)? {
                Some(stage) => Ok(draft.finish(Reply::Update(stage))),
                None => Err(Refusal::RunClosed),
            }
        }
        Input::Deliver { action: Action::AdoptChild(AdoptChild { parent, .. }), .. } => {
            reset::adopt(&mut draft, parent);
            Ok(draft.finish(Reply::Delivered(EffectOutcome::Applied)))
        }
        Input::Deliver { .. } => {
            Ok(draft.finish(Reply::Delivered(EffectOutcome::Failed(DeliveryFailure::Closed))))
        }
        Input::Recover | Input::Repair { .. } => {
            draft.run.touch_everything();
            Ok(draft.finish(Reply::Done))
        }
        Input::Due { .. } => Ok(draft.finish(Reply::NotDue)),
        _ => Err(Refusal::RunClosed),
    }
}

impl Run {
    /// Number of external requests without an answer. Cancel requests to its own children do not
    /// count: they must not block the cleanup that follows them.
    pub(super) fn pending_requests(&self) -> usize {
        let counts = |effect: &&Effect| {
            let own =
                matches!(effect.action, Action::Cancel { .. }) && effect.target.child.is_some();
            !own && effect
                .initiated
                .is_some_and(|initiated| self.externals.contains_key(&initiated))
        };
        match self.externals.is_empty() {
            true => 0,
            false => self.outbox.values().filter(counts).count(),
        }
    }

    /// Event that an answer becomes; `None` if no event waits for it.
    fn answer_fact(&self, effect: &Effect, answer: EffectOutcome) -> Option<Fact> {
        let initiated = effect.initiated?;
        let fact = match (&effect.action, answer) {
            (Action::StartChild(start), EffectOutcome::Applied) => {
                ChildStarted { initiated, run: start.run }.into()
            }
            (Action::StartChild(_), EffectOutcome::Failed(cause)) => {
                ChildStartFailed { initiated, cause }.into()
            }
            (Action::Signal { .. }, EffectOutcome::Applied) => {
                ExternalSignalDelivered { initiated }.into()
            }
            (Action::Signal { .. }, EffectOutcome::Failed(cause)) => {
                ExternalSignalFailed { initiated, cause }.into()
            }
            (Action::Cancel { .. }, EffectOutcome::Applied) => {
                ExternalCancelDelivered { initiated }.into()
            }
            (Action::Cancel { .. }, EffectOutcome::Failed(cause)) => {
                ExternalCancelFailed { initiated, cause }.into()
            }
            (Action::ChildClosed(_), _) | (Action::AdoptChild(_), EffectOutcome::Applied) => {
                return None;
            }
            (Action::AdoptChild(adopt), EffectOutcome::Failed(_)) => {
                let reason = "the child no longer exists".into();
                ChildTerminated { initiated, run: adopt.run, reason }.into()
            }
        };
        Some(fact)
    }

    pub(super) fn apply_child(&mut self, event: &Event) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "called for children only")]
        match &event.body.fact {
            Fact::ChildInitiated(initiated) => self.initiate_child(event.number, initiated),
            Fact::ExternalSignalInitiated(initiated) => {
                let action = Action::Signal {
                    name: initiated.name.clone(),
                    input: initiated.input.clone(),
                    header: initiated.header.clone(),
                };
                let effect = self.send(initiated.target.clone(), action, Some(event.number));
                self.externals.insert(event.number, effect);
            }
            Fact::ExternalCancelInitiated(initiated) => {
                let action =
                    Action::Cancel { mode: initiated.mode, reason: initiated.reason.clone() };
                let effect = self.send(initiated.target.clone(), action, Some(event.number));
                self.externals.insert(event.number, effect);
            }
            other => self.mark_child(other),
        }
        if let Some(initiated) = closes_child(&event.body.fact) {
            self.children.remove(&initiated);
            self.externals.remove(&initiated);
        }
    }

    /// Applies an answer or a close, whether it is numbered or still buffered.
    pub(super) fn mark_child(&mut self, fact: &Fact) {
        if let Fact::ChildStarted(started) = fact {
            if let Some(child) = self.children.get_mut(&started.initiated) {
                child.started = true;
            }
            self.settle_initiated(started.initiated);
            if self.last_event > self.copied {
                self.adopt_child(started.initiated);
            }
        }
        if let Some(initiated) = closes_child(fact) {
            if let Some(child) = self.children.get_mut(&initiated) {
                child.closing = true;
            }
            self.settle_initiated(initiated);
        }
    }

    fn initiate_child(&mut self, number: EventNumber, initiated: &ChildInitiated) {
        let child = &initiated.child;
        let start = StartChild {
            run: initiated.run,
            child: child.clone(),
            parent: Parent { run: self.reference(), initiated: number, ordinal: self.ordinal },
            root: self.root.clone().unwrap_or_else(|| self.reference()),
        };
        let target = Target { workflow: child.workflow.clone(), run: None, child: None };
        let effect = self.send(target, Action::StartChild(Box::new(start)), Some(number));
        let (child, run) = (child.clone(), initiated.run);
        self.children.insert(number, Child { child, run, effect, started: false, closing: false });
    }

    /// Puts an effect into the outbox and returns its number.
    pub(super) fn send(
        &mut self,
        target: Target,
        action: Action,
        initiated: Option<EventNumber>,
    ) -> u64 {
        self.effects += 1;
        self.outbox.insert(self.effects, Effect { target, action, initiated });
        self.touch(Touch::Effect(self.effects));
        self.effects
    }

    pub(super) fn settle_effect(&mut self, number: u64) {
        self.outbox.remove(&number);
        self.touch(Touch::Effect(number));
    }

    /// Marks the start of a child, or an external request, as delivered.
    pub(super) fn settle_initiated(&mut self, initiated: EventNumber) {
        let child = self.children.get(&initiated).map(|child| child.effect);
        let effect = child.or_else(|| self.externals.get(&initiated).copied());
        if let Some(number) = effect.filter(|number| self.outbox.contains_key(number)) {
            self.settle_effect(number);
        }
    }
}

/// Number of the event that initiated the child or request that a fact ends.
pub(super) fn closes_child(fact: &Fact) -> Option<EventNumber> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other facts end no child")]
    match fact {
        Fact::ChildStartFailed(closed) => Some(closed.initiated),
        Fact::ChildCompleted(closed) => Some(closed.initiated),
        Fact::ChildFailed(closed) => Some(closed.initiated),
        Fact::ChildTimedOut(closed) => Some(closed.initiated),
        Fact::ChildCancelled(closed) => Some(closed.initiated),
        Fact::ChildTerminated(closed) => Some(closed.initiated),
        Fact::ExternalSignalDelivered(closed) => Some(closed.initiated),
        Fact::ExternalSignalFailed(closed) => Some(closed.initiated),
        Fact::ExternalCancelDelivered(closed) => Some(closed.initiated),
        Fact::ExternalCancelFailed(closed) => Some(closed.initiated),
        _ => None,
    }
}
