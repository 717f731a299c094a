//! The state of one request, and all answers to it.
//!
//! | status | decision | handover | withdrawal | deadline |
//! |---|---|---|---|---|
//! | open | counts, or decides | lists show other actors | withdrawn | timed out |
//! | timed out | kept as late; judged again when it is asked again | closed | closed | |
//! | decided | already decided | already decided | already decided | |
//! | withdrawn | closed | closed | closed | |

use std::{collections::BTreeMap, rc::Rc};

use serde_json::Value;

use super::{
    Answer, AnswerChannel, AnswerResult, Effect, Entry, Receipt, Refusal, RequestState, Status,
    Verdict, Vote, answer::Step, choice, link::RequestLink, rules::Rules,
};
use crate::{Timestamp, context::Deadline};

#[derive(Debug)]
pub(super) struct Record {
    pub(super) rules: Rules,
    pub(super) votes: Vec<Vote<Value>>,
    /// Pairs of delegator and delegate, in order.
    pub(super) handovers: Vec<(String, String)>,
    asked_at: Timestamp,
    ended: Option<(Timestamp, RequestEnd)>,
    tie: Rc<RequestLink>,
    entries: Vec<Entry>,
    /// The receipts of answers that have a key, by approver and key.
    told: BTreeMap<(String, String), Receipt>,
    deadline: Deadline,
}

#[derive(Clone, Debug)]
enum RequestEnd {
    Decided(Value),
    TimedOut,
    Withdrawn { by: Option<String>, comment: Option<String> },
}

impl Record {
    /// A request that is asked for the first time; `early` are the answers that came before.
    pub(super) fn new(
        rules: Rules,
        tie: Rc<RequestLink>,
        early: Vec<Entry>,
        now: Timestamp,
    ) -> Self {
        let mut record = Self {
            rules,
            votes: Vec::new(),
            handovers: Vec::new(),
            asked_at: now,
            ended: None,
            tie,
            entries: early,
            told: BTreeMap::new(),
            deadline: Deadline::default(),
        };
        record.judge_again(now);
        record
    }

    /// Reopens a request that has timed out.
    pub(super) fn ask_again(&mut self, rules: Rules, tie: Rc<RequestLink>, now: Timestamp) {
        self.rules = rules;
        self.tie = tie;
        self.asked_at = now;
        self.ended = None;
        self.deadline = Deadline::default();
        self.judge_again(now);
    }

    /// Judges all kept answers by the current rules, in order of arrival.
    fn judge_again(&mut self, now: Timestamp) {
        self.votes.clear();
        self.handovers.clear();
        for index in 0..self.entries.len() {
            let Entry { at, answer, result, .. } = self.entries[index].clone();
            let judged = match result {
                AnswerResult::Refused(_) | AnswerResult::Repeated => continue,
                AnswerResult::Early if self.repeated(&answer).is_some() => AnswerResult::Repeated,
                AnswerResult::Taken(_) | AnswerResult::Early => match self.judge(&answer) {
                    Ok(()) => {
                        let receipt = self.apply(&answer, at, now);
                        self.tell(&answer, &receipt);
                        AnswerResult::Taken(receipt)
                    }
                    Err(refusal) => AnswerResult::Refused(refusal),
                },
            };
            self.entries[index].result = judged;
        }
    }

    pub(super) fn status(&self) -> Status {
        match &self.ended {
            Some((_, RequestEnd::Decided(_))) => Status::Decided,
            Some((_, RequestEnd::TimedOut)) => Status::TimedOut,
            Some((_, RequestEnd::Withdrawn { .. })) => Status::Withdrawn,
            None if self.tie.abandoned_at().is_some() => Status::Withdrawn,
            None => Status::Open,
        }
    }

    /// The receipt of the earlier answer that this one repeats.
    pub(super) fn repeated(&self, answer: &Answer) -> Option<&Receipt> {
        self.told.get(&answer.identity()?)
    }

    /// Stores the receipt of an answer, unless there is one already.
    fn tell(&mut self, answer: &Answer, receipt: &Receipt) {
        if let Some(identity) = answer.identity() {
            self.told.entry(identity).or_insert_with(|| receipt.clone());
        }
    }

    /// The reply to the sender of an update. After a deadline with a fallback the request is
    /// decided. A later decision is still kept as late, for code, but its sender must learn that it
    /// has no effect.
    fn told_to_sender(&self, told: Result<Receipt, Refusal>) -> Result<Receipt, Refusal> {
        match (told, &self.ended, self.decision()) {
            (Ok(receipt), Some((_, RequestEnd::TimedOut)), Some(decision))
                if receipt.effect == Effect::Late =>
            {
                let (request, decision) = (receipt.request, decision.to_owned());
                Err(Refusal::AlreadyDecided { request, decision })
            }
            (told, ..) => told,
        }
    }

    /// Accepts or refuses an answer. Either is recorded.
    pub(super) fn take(
        &mut self,
        answer: Answer,
        channel: AnswerChannel,
        now: Timestamp,
    ) -> Result<Receipt, Refusal> {
        let (result, told) = match self.repeated(&answer).cloned() {
            Some(receipt) => (AnswerResult::Repeated, Ok(receipt)),
            None => match self.judge(&answer) {
                Ok(()) => {
                    let receipt = self.apply(&answer, now, now);
                    self.tell(&answer, &receipt);
                    (AnswerResult::Taken(receipt.clone()), Ok(receipt))
                }
                Err(refusal) => (AnswerResult::Refused(refusal.clone()), Err(refusal)),
            },
        };
        self.entries.push(Entry { at: now, channel, answer, result });
        match channel {
            AnswerChannel::Update => self.told_to_sender(told),
            AnswerChannel::Signal | AnswerChannel::Code => told,
        }
    }

    /// Applies an allowed answer that arrived at `at`.
    fn apply(&mut self, answer: &Answer, at: Timestamp, now: Timestamp) -> Receipt {
        let effect = match &answer.step {
            _ if self.status() == Status::TimedOut => Effect::Late,
            Step::Decision(choice) => self.vote(answer, choice, at, now),
            Step::DelegateTo(to) => {
                self.handovers.push((answer.approver.clone(), to.clone()));
                self.tie.wake();
                Effect::Delegated
            }
            Step::Withdraw => {
                self.withdraw(Some(answer.approver.clone()), answer.comment.clone(), now);
                Effect::Withdrawn
            }
        };
        Receipt { request: self.rules.id.clone(), at, effect }
    }

    fn vote(&mut self, answer: &Answer, choice: &Value, at: Timestamp, now: Timestamp) -> Effect {
        self.votes.push(Vote {
            choice: choice.clone(),
            approver: answer.approver.clone(),
            on_behalf_of: self.seat_of(&answer.approver).map(str::to_owned),
            comment: answer.comment.clone(),
            at,
        });
        let choices: Vec<_> = self.votes.iter().map(|vote| &vote.choice).collect();
        match self.rules.outcome(&choices).cloned() {
            Some(choice) => {
                self.ended = Some((now, RequestEnd::Decided(choice)));
                Effect::Decided
            }
            None => Effect::Counted,
        }
    }

    pub(super) fn withdraw(&mut self, by: Option<String>, comment: Option<String>, now: Timestamp) {
        self.ended.get_or_insert((now, RequestEnd::Withdrawn { by, comment }));
    }

    /// Withdraws the request from code, if it is open.
    pub(super) fn withdraw_open(&mut self, why: &str, now: Timestamp) -> Result<(), Refusal> {
        if self.status() != Status::Open {
            return Err(Refusal::Closed { request: self.rules.id.clone() });
        }
        self.withdraw(None, Some(why.to_owned()), now);
        Ok(())
    }

    pub(super) fn time_out(&mut self, now: Timestamp) {
        self.ended.get_or_insert((now, RequestEnd::TimedOut));
    }

    pub(super) fn set_deadline(&mut self, deadline: Deadline) {
        self.deadline = deadline;
    }

    pub(super) const fn deadline(&self) -> &Deadline {
        &self.deadline
    }

    /// Whether the future with this tie asked it.
    pub(super) fn is_tied(&self, tie: &Rc<RequestLink>) -> bool {
        Rc::ptr_eq(&self.tie, tie)
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether the request has ended: by a decision, the deadline, or a withdrawal.
    pub(super) const fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// The name of the decision or fallback, once the request has ended.
    pub(super) fn decision(&self) -> Option<&str> {
        match &self.ended.as_ref()?.1 {
            RequestEnd::Decided(choice) => choice::name(choice),
            RequestEnd::TimedOut => self.rules.fallback.as_ref().and_then(choice::name),
            RequestEnd::Withdrawn { .. } => None,
        }
    }

    /// The verdict, once the request has ended.
    pub(super) fn verdict(&self) -> Option<Verdict<Value>> {
        let votes = self.votes.clone();
        Some(match &self.ended.as_ref()?.1 {
            RequestEnd::Decided(choice) => Verdict::Decided { choice: choice.clone(), votes },
            RequestEnd::TimedOut => {
                Verdict::TimedOut { fallback: self.rules.fallback.clone(), votes }
            }
            RequestEnd::Withdrawn { by, comment } => {
                Verdict::Withdrawn { by: by.clone(), comment: comment.clone() }
            }
        })
    }

    /// The people who may act, after all delegations; empty if anyone may.
    pub(super) fn approvers(&self) -> Vec<String> {
        if self.rules.open_to_all() {
            return Vec::new();
        }
        let gone = |name: &String| self.handovers.iter().any(|(from, _)| from == name);
        let delegates = self.handovers.iter().map(|(_, to)| to);
        let all = self.rules.approvers.iter().chain(delegates);
        all.filter(|name| !gone(name)).cloned().collect()
    }

    /// The people and roles that may act, as lists show them.
    pub(super) fn actors(&self) -> Vec<String> {
        let mut actors = self.approvers();
        actors.extend(self.rules.roles.iter().cloned());
        actors
    }

    pub(super) fn standing(&self) -> RequestState {
        let reason = match &self.ended {
            Some((_, RequestEnd::Withdrawn { comment, .. })) => comment.clone(),
            _ => None,
        };
        let ended_at = self.ended.as_ref().map(|(at, _)| *at).or_else(|| self.tie.abandoned_at());
        let rules = &self.rules;
        RequestState {
            request: rules.id.clone(),
            subject: rules.subject.clone(),
            requester: rules.requester.clone(),
            approvers: self.approvers(),
            roles: rules.roles.clone(),
            choices: rules.choices.clone(),
            status: self.status(),
            decision: self.decision().map(str::to_owned),
            reason,
            asked_at: self.asked_at,
            ended_at,
            deadline: self.deadline.at(),
            timer: self.deadline.timer_id().filter(|_| self.deadline.is_open()).cloned(),
            entries: self.entries.clone(),
        }
    }
}
