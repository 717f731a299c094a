//! What the run knows of one request: how it stands, and everything that was said to it.
//!
//! | status | decision | handover | withdrawal | deadline |
//! |---|---|---|---|---|
//! | open | counts, or decides | the wait is opened anew, with other actors | withdrawn | timed out |
//! | timed out | kept as late; judged when it is asked again | closed | closed | |
//! | decided | already decided | already decided | already decided | |
//! | withdrawn | closed | closed | closed | |

use std::{cell::Cell, rc::Rc};

use serde_json::Value;

use super::{
    Answer, Effect, Entry, Judgement, Receipt, Refusal, Standing, Status, Verdict, Vote, Way,
    answer::Step, choice, rules::Rules,
};
use crate::{Timestamp, context::Deadline};

/// When the future that waits for a request was dropped, shared with that future, which cannot always
/// reach the state when it is dropped.
pub(super) type Abandoned = Rc<Cell<Option<Timestamp>>>;

/// One request.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) rules: Rules,
    pub(super) votes: Vec<Vote<Value>>,
    /// Who has handed over to whom, in order.
    pub(super) handovers: Vec<(String, String)>,
    asked_at: Timestamp,
    ended: Option<(Timestamp, Ending)>,
    abandoned: Abandoned,
    entries: Vec<Entry>,
    deadline: Deadline,
    /// The deadline of a wait that must be opened anew.
    kept_deadline: Option<Timestamp>,
    /// How often the wait had to be opened anew.
    relisted: u64,
}

/// How a request ended.
#[derive(Clone, Debug)]
enum Ending {
    Decided(Value),
    TimedOut,
    Withdrawn { by: Option<String>, comment: Option<String> },
}

impl Record {
    /// A request that is asked for the first time; `early` are the answers that came before.
    pub(super) fn new(
        rules: Rules,
        abandoned: Abandoned,
        early: Vec<Entry>,
        now: Timestamp,
    ) -> Self {
        let mut record = Self {
            rules,
            votes: Vec::new(),
            handovers: Vec::new(),
            asked_at: now,
            ended: None,
            abandoned,
            entries: early,
            deadline: Deadline::default(),
            kept_deadline: None,
            relisted: 0,
        };
        record.judge_again(now);
        record
    }

    /// The same request is asked again after it has timed out.
    pub(super) fn ask_again(&mut self, rules: Rules, abandoned: Abandoned, now: Timestamp) {
        self.rules = rules;
        self.abandoned = abandoned;
        self.asked_at = now;
        self.ended = None;
        self.deadline = Deadline::default();
        self.judge_again(now);
    }

    /// Judges all that was kept by the rules as they are now, in the order in which it came.
    fn judge_again(&mut self, now: Timestamp) {
        self.votes.clear();
        self.handovers.clear();
        for index in 0..self.entries.len() {
            let Entry { at, answer, judgement, .. } = &self.entries[index];
            let kept = match judgement {
                Judgement::Taken(_) | Judgement::Early => (answer.clone(), *at),
                Judgement::Refused(_) | Judgement::Repeated => continue,
            };
            let (answer, at) = kept;
            self.entries[index].judgement = match self.judge(&answer) {
                Ok(()) => Judgement::Taken(self.apply(&answer, at, now)),
                Err(refusal) => Judgement::Refused(refusal),
            };
        }
    }

    pub(super) fn status(&self) -> Status {
        match &self.ended {
            Some((_, Ending::Decided(_))) => Status::Decided,
            Some((_, Ending::TimedOut)) => Status::TimedOut,
            Some((_, Ending::Withdrawn { .. })) => Status::Withdrawn,
            None if self.abandoned.get().is_some() => Status::Withdrawn,
            None => Status::Open,
        }
    }

    /// What an earlier answer was told that this one repeats.
    pub(super) fn repeated(&self, answer: &Answer) -> Option<&Receipt> {
        self.entries.iter().find_map(|entry| match &entry.judgement {
            Judgement::Taken(receipt) if entry.answer.repeats(answer) => Some(receipt),
            _ => None,
        })
    }

    /// Takes an answer, or says why not. Either is remembered.
    pub(super) fn take(
        &mut self,
        answer: Answer,
        way: Way,
        now: Timestamp,
    ) -> Result<Receipt, Refusal> {
        let (judgement, told) = if let Some(receipt) = self.repeated(&answer) {
            (Judgement::Repeated, Ok(receipt.clone()))
        } else {
            // Nobody would tell the sender of a late signal, so it is judged when it may count.
            let late = way == Way::Signal && self.status() == Status::TimedOut;
            let judged = if late { Ok(()) } else { self.judge(&answer) };
            match judged {
                Ok(()) => {
                    let receipt = self.apply(&answer, now, now);
                    (Judgement::Taken(receipt.clone()), Ok(receipt))
                }
                Err(refusal) => (Judgement::Refused(refusal.clone()), Err(refusal)),
            }
        };
        self.entries.push(Entry { at: now, way, answer, judgement });
        told
    }

    /// Carries out an answer that came at some time and is allowed.
    fn apply(&mut self, answer: &Answer, at: Timestamp, now: Timestamp) -> Receipt {
        let effect = match &answer.step {
            _ if self.status() == Status::TimedOut => Effect::Late,
            Step::Decision(choice) => self.vote(answer, choice, at, now),
            Step::DelegateTo(to) => {
                self.handovers.push((answer.approver.clone(), to.clone()));
                self.kept_deadline = self.deadline.at();
                self.relisted += 1;
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
                self.ended = Some((now, Ending::Decided(choice)));
                Effect::Decided
            }
            None => Effect::Counted,
        }
    }

    pub(super) fn withdraw(&mut self, by: Option<String>, comment: Option<String>, now: Timestamp) {
        self.ended.get_or_insert((now, Ending::Withdrawn { by, comment }));
    }

    pub(super) fn time_out(&mut self, now: Timestamp) {
        self.ended.get_or_insert((now, Ending::TimedOut));
    }

    pub(super) fn set_deadline(&mut self, deadline: Deadline) {
        self.deadline = deadline;
    }

    pub(super) const fn deadline(&self) -> &Deadline {
        &self.deadline
    }

    /// The deadline that a wait which is opened anew must have.
    pub(super) const fn kept_deadline(&self) -> Option<Timestamp> {
        self.kept_deadline
    }

    /// Changes when the wait must be opened anew, because others may act.
    pub(super) const fn relisted(&self) -> u64 {
        self.relisted
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What was waited for has come: a decision, the deadline, or a withdrawal.
    pub(super) const fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// The name of what holds, once it is over.
    pub(super) fn decision(&self) -> Option<&str> {
        match &self.ended.as_ref()?.1 {
            Ending::Decided(choice) => choice::name(choice),
            Ending::TimedOut => self.rules.fallback.as_ref().and_then(choice::name),
            Ending::Withdrawn { .. } => None,
        }
    }

    /// What it came to, if it is over.
    pub(super) fn verdict(&self) -> Option<Verdict<Value>> {
        let votes = self.votes.clone();
        Some(match &self.ended.as_ref()?.1 {
            Ending::Decided(choice) => Verdict::Decided { choice: choice.clone(), votes },
            Ending::TimedOut => Verdict::TimedOut { fallback: self.rules.fallback.clone(), votes },
            Ending::Withdrawn { by, comment } => {
                Verdict::Withdrawn { by: by.clone(), comment: comment.clone() }
            }
        })
    }

    /// Who may act by name, after all handovers.
    pub(super) fn approvers(&self) -> Vec<String> {
        let gone = |name: &String| self.handovers.iter().any(|(from, _)| from == name);
        let delegates = self.handovers.iter().map(|(_, to)| to);
        let all = self.rules.approvers.iter().chain(delegates);
        all.filter(|name| !gone(name)).cloned().collect()
    }

    /// Who may act, people and roles, as lists show it.
    pub(super) fn actors(&self) -> Vec<String> {
        let mut actors = self.approvers();
        actors.extend(self.rules.roles.iter().cloned());
        actors
    }

    pub(super) fn standing(&self) -> Standing {
        let reason = match &self.ended {
            Some((_, Ending::Withdrawn { comment, .. })) => comment.clone(),
            _ => None,
        };
        let ended_at = self.ended.as_ref().map(|(at, _)| *at).or_else(|| self.abandoned.get());
        let rules = &self.rules;
        Standing {
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
