//! Whether an answer is allowed. Judging changes nothing, so that it can run as a validator.

use serde_json::Value;

use super::{
    Answer, Refusal, Status,
    answer::Step,
    bounds::{COMMENT_BYTES_MAX, HANDOVERS_MAX, NAME_BYTES_MAX},
    choice,
    record::Record,
};

impl Record {
    /// Checks whether the validator lets an answer pass.
    pub(super) fn admit(&self, answer: &Answer) -> Result<(), Refusal> {
        match self.repeated(answer) {
            Some(_) => Ok(()),
            None if self.rules.record_refusals => self.fits(answer),
            None => self.judge(answer),
        }
    }

    /// Checks whether an answer is allowed in the current state.
    pub(super) fn judge(&self, answer: &Answer) -> Result<(), Refusal> {
        self.fits(answer)?;
        let request = || self.rules.id.clone();
        match self.status() {
            Status::Open => {}
            Status::Decided => {
                let decision = self.decision().unwrap_or_default().to_owned();
                return Err(Refusal::AlreadyDecided { request: request(), decision });
            }
            Status::TimedOut if matches!(answer.step, Step::Decision(_)) => {}
            Status::TimedOut | Status::Withdrawn => {
                return Err(Refusal::Closed { request: request() });
            }
        }
        match &answer.step {
            Step::Decision(value) => self.may_act(answer).and_then(|()| self.offered(value)),
            Step::DelegateTo(to) => {
                self.may_act(answer).and_then(|()| self.may_take_over(&answer.approver, to))
            }
            Step::Withdraw => self.may_withdraw(&answer.approver),
        }
    }

    /// Checks that the texts of an answer are within their bounds.
    fn fits(&self, answer: &Answer) -> Result<(), Refusal> {
        let delegate = answer.delegate_to().unwrap_or_default();
        let comment = answer.comment.as_deref().unwrap_or_default();
        let texts = [
            ("approver", answer.approver.as_str(), NAME_BYTES_MAX),
            ("delegate_to", delegate, NAME_BYTES_MAX),
            ("comment", comment, COMMENT_BYTES_MAX),
        ];
        match texts.into_iter().find(|(_, text, limit)| text.len() > *limit) {
            Some((part, text, limit)) => Err(Refusal::TooLong {
                request: self.rules.id.clone(),
                part: part.into(),
                bytes: text.len(),
                limit,
            }),
            None => Ok(()),
        }
    }

    fn may_act(&self, answer: &Answer) -> Result<(), Refusal> {
        let (request, approver) = (self.rules.id.clone(), answer.approver.clone());
        if let Some((_, to)) = self.handovers.iter().find(|(from, _)| *from == approver) {
            return Err(Refusal::HandedOver { request, approver, to: to.clone() });
        }
        if self.votes.iter().any(|vote| vote.approver == approver) {
            return Err(Refusal::AlreadyVoted { request, approver });
        }
        let named = self.rules.approvers.contains(&approver) || self.seat_of(&approver).is_some();
        let by_role = answer.roles.iter().any(|role| self.rules.roles.contains(role));
        // An answer without a name could not be attributed later.
        if approver.is_empty() || !(named || by_role || self.rules.open_to_all()) {
            return Err(Refusal::NotAllowed { request, approver });
        }
        Ok(())
    }

    fn offered(&self, value: &Value) -> Result<(), Refusal> {
        let request = || self.rules.id.clone();
        let decision = choice::name(value).map_or_else(|| value.to_string(), str::to_owned);
        if !self.rules.choices.contains(&decision) {
            let choices = self.rules.choices.clone();
            return Err(Refusal::NoSuchDecision { request: request(), decision, choices });
        }
        (self.rules.readable)(value).map_err(|problem| Refusal::UnreadableDecision {
            request: request(),
            decision,
            problem,
        })
    }

    /// A person gets at most one vote, and does not get back a vote that they delegated.
    fn may_take_over(&self, from: &str, to: &str) -> Result<(), Refusal> {
        let request = || self.rules.id.clone();
        if self.handovers.len() >= HANDOVERS_MAX {
            return Err(Refusal::TooManyHandovers { request: request(), limit: HANDOVERS_MAX });
        }
        let takes_part = from == to
            || self.rules.approvers.iter().any(|name| name == to)
            || self.handovers.iter().any(|(from, other)| from == to || other == to)
            || self.votes.iter().any(|vote| vote.approver == to);
        if to.is_empty() || takes_part {
            return Err(Refusal::CannotDelegate { request: request(), to: to.to_owned() });
        }
        Ok(())
    }

    fn may_withdraw(&self, requester: &str) -> Result<(), Refusal> {
        if self.rules.requester.as_deref() == Some(requester) {
            return Ok(());
        }
        let (request, approver) = (self.rules.id.clone(), requester.to_owned());
        Err(Refusal::NotAllowed { request, approver })
    }

    /// The person in whose place a delegate acts: the first in the chain of delegations.
    pub(super) fn seat_of(&self, delegate: &str) -> Option<&str> {
        let from = |to: &str| self.handovers.iter().find(|(_, other)| other == to);
        let mut seat = None;
        let mut holder = delegate;
        // Bounds the walk: each delegation moves a vote once.
        for _ in &self.handovers {
            let Some((previous, _)) = from(holder) else { break };
            seat = Some(previous.as_str());
            holder = previous;
        }
        seat
    }
}
