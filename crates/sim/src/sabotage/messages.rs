//! Bugs in the inputs and outputs of the shard machines.

use abide_core::{
    attempt::ActivityToken,
    command::Ask,
    dispatch::{Dispatch, Worker},
    effect::{Action, Effect, EffectOutcome, RunOutcome},
    event::UpdateOutcome,
    ids::RunId,
    operation::{
        AnyAnswer, CallError, Cancel, Done, RescheduleTimer, RunOperation, Signal, UpdateAnswer,
    },
    replay::Completion,
    report::{Report, ReportAnswer},
    run::{Refusal, Stage},
    schedule::id_of,
};
use abide_shard::message::{Envelope, Mail, Message, Offer, Output, Work};

use super::{Bug, Saboteur};
use crate::checks::ledger::Ledger;

impl Saboteur {
    /// The message as the machine gets it, if it does.
    pub fn incoming(&mut self, ledger: &Ledger, mut message: Message) -> Option<Message> {
        if self.bug.is_none() {
            return Some(message);
        }
        match &mut message {
            Message::Matched(offer, worker) => {
                if self.strikes(Bug::LostMatch) {
                    return None;
                }
                self.dispatch_early(ledger, offer, worker);
            }
            Message::Mail(Mail::Deliver(envelope)) if self.answers_for(envelope) => return None,
            Message::Mail(Mail::Deliver(envelope)) => self.alter_effect(envelope),
            Message::Lapse if self.bug == Some(Bug::LapseIgnored) => return None,
            Message::Close if self.bug == Some(Bug::ReleasedEarly) => {
                self.early.push(Output::Released);
            }
            Message::Report(_, report) => {
                if let Report::ResolveActivity(token, _) = &mut **report
                    && self.bug == Some(Bug::TamperedToken)
                {
                    tamper(ledger, token);
                }
            }
            Message::Ask(_, operation) => {
                if let RunOperation::RescheduleTimer(moved) = &mut **operation
                    && self.bug == Some(Bug::MoveWithoutKey)
                {
                    moved.key = None;
                }
                if let RunOperation::Reset(reset) = &mut **operation
                    && self.bug == Some(Bug::SignalsNotKept)
                {
                    reset.reapply.signals = false;
                }
                self.take_for_first(operation);
            }
            _ => {}
        }
        Some(message)
    }

    fn dispatch_early(&mut self, ledger: &Ledger, offer: &Offer, worker: &Worker) {
        let Work::Activity(scheduled) = offer.work else { return };
        if !self.strikes(Bug::EarlyDispatch) {
            return;
        }
        let Some(story) = ledger.stories.get(&offer.run) else { return };
        let Some(activity) = story.run.activities.get(&scheduled) else { return };
        let Some(given) = story.run.activity_given(scheduled) else { return };
        let (workflow, run) = (offer.workflow.clone(), offer.run);
        let token = ActivityToken { workflow, run, scheduled, start: activity.starts + 1 };
        let dispatch = Dispatch::Activity { token, given: Box::new(given), eager: false };
        self.early.push(Output::Dispatch(worker.clone(), Box::new(dispatch)));
    }

    /// Answers an effect instead of the machine; `true` if the machine never gets it.
    fn answers_for(&mut self, envelope: &Envelope) -> bool {
        let lost = match &envelope.effect {
            Effect { action: Action::ChildClosed(_), target, .. }
                if id_of(&target.workflow.workflow).is_some() =>
            {
                self.strikes(Bug::LostScheduledEnd)
            }
            Effect { action: Action::ChildClosed(_), .. } => self.strikes(Bug::LostChildClose),
            Effect { action: Action::StartChild(_), .. }
                if id_of(&envelope.key.workflow.workflow).is_some() =>
            {
                self.strikes(Bug::LostScheduledStart)
            }
            Effect { action: Action::AdoptChild(_), .. } => self.bug == Some(Bug::LostAdoption),
            Effect { action: Action::Cancel { .. }, initiated: None, .. } => {
                self.strikes(Bug::IgnoredParentClose)
            }
            _ => false,
        };
        if lost || self.strikes(Bug::EarlyAnswer) {
            let key = envelope.key.clone();
            let answer = Mail::Answered(key.clone(), EffectOutcome::Applied);
            self.early.push(Output::Mail(key.shard(), answer));
        }
        lost
    }

    fn alter_effect(&mut self, envelope: &mut Envelope) {
        if let Action::ChildClosed(closed) = &mut envelope.effect.action
            && self.strikes(Bug::WrongChildOutcome)
        {
            closed.outcome = RunOutcome::Completed(Vec::new());
        }
    }

    /// The output as the world gets it, once or twice.
    pub fn outgoing(&mut self, mut output: Output) -> Vec<Output> {
        if self.bug.is_none() {
            return vec![output];
        }
        match &mut output {
            Output::Dispatch(_, dispatch) => match &mut **dispatch {
                Dispatch::Workflow { last_event, .. } if self.strikes(Bug::WrongLastEvent) => {
                    *last_event -= 1;
                }
                Dispatch::Activity { .. } if self.strikes(Bug::DuplicateDispatch) => {
                    return vec![output.clone(), output];
                }
                _ => {}
            },
            Output::Reply(_, Err(CallError::Blocked(_)))
                if self.bug == Some(Bug::BlockedUntold) =>
            {
                return vec![];
            }
            Output::Reply(_, Ok(reply)) => self.alter_reply(reply),
            Output::Reply(_, reply @ Err(CallError::Refused(Refusal::StaleAttempt)))
                if self.bug == Some(Bug::AnsweredTwice) =>
            {
                *reply = Ok(Done { run: RunId::MIN, repeat: false, fire_at: None }.into());
            }
            Output::Acknowledge(_, answer @ Err(CallError::Refused(Refusal::StaleAttempt)))
                if self.bug == Some(Bug::AnsweredTwice) =>
            {
                *answer = Ok(ReportAnswer::Done { run: RunId::MIN, repeat: false });
            }
            _ => {}
        }
        vec![output]
    }

    fn alter_reply(&mut self, reply: &mut AnyAnswer) {
        let AnyAnswer::Update(answer) = reply else { return };
        match answer {
            UpdateAnswer::Reached { stage: Stage::Completed(outcome), .. }
                if self.strikes(Bug::WrongOutcome) =>
            {
                *outcome = UpdateOutcome::Completed(Vec::new());
            }
            UpdateAnswer::Rejected(_) if self.bug == Some(Bug::RejectionAsAcceptance) => {
                let run = RunId::MIN;
                *answer = UpdateAnswer::Reached { run, stage: Stage::Accepted };
            }
            _ => {}
        }
    }

    /// What a worker replies.
    pub fn completion(&mut self, mut completion: Completion) -> Completion {
        let commands = &mut completion.commands;
        let open = commands.iter().take_while(|command| !command.ask.closes()).count();
        if open >= 2 && self.strikes(Bug::SwappedCommands) {
            commands.swap(0, 1);
        }
        self.corrupt_waits(commands);
        if matches!(commands.last().map(|last| &last.ask), Some(Ask::CompleteRun(_)))
            && self.bug == Some(Bug::UnfinishedUpdate)
        {
            commands.retain(|command| !matches!(command.ask, Ask::CompleteUpdate { .. }));
        }
        if let Some(Ask::ContinueAsNew(next)) = commands.last_mut().map(|last| &mut last.ask) {
            match self.bug {
                Some(Bug::SignalLeftBehind) => next.signals.clear(),
                Some(Bug::UpdateLeftBehind) => next.updates.clear(),
                _ => {}
            }
        }
        completion
    }

    /// The request of a client at its `attempt`.
    pub fn repeated(&mut self, mut asked: RunOperation, attempt: u32) -> RunOperation {
        if attempt > 1 {
            self.change_content(&mut asked);
        }
        if attempt > 1 && self.bug == Some(Bug::KeyDropped) {
            match &mut asked {
                RunOperation::Signal(Signal { signal, .. }) => signal.key = None,
                RunOperation::Start(start) => start.key = None,
                RunOperation::Reset(reset) => reset.key = None,
                RunOperation::Cancel(Cancel { key, .. })
                | RunOperation::RescheduleTimer(RescheduleTimer { key, .. }) => *key = None,
                _ => {}
            }
        }
        asked
    }
}

/// Makes the token identify the current start.
fn tamper(ledger: &Ledger, token: &mut ActivityToken) {
    let story = ledger.stories.get(&token.run);
    if let Some(activity) = story.and_then(|story| story.run.activities.get(&token.scheduled)) {
        token.start = activity.starts;
    }
}
