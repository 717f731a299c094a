//! All requests of a run, as a part of the workflow's state.

use std::{collections::VecDeque, rc::Rc};

use super::{
    Answer, AnswerChannel, AnswerResult, Effect, Entry, Receipt, Refusal, Report, RequestState,
    Status, bounds::EARLY_MAX, link::RequestLink, record::Record, rules::Rules,
};
use crate::{
    Timestamp,
    context::Deadline,
    error::{Error, Result},
};

/// The requests of a run: a field of the workflow's state.
#[derive(Debug, Default)]
pub struct Approvals {
    /// In the order in which they were first asked.
    records: Vec<Record>,
    /// Answers by signal to requests that have not been asked.
    early: VecDeque<Entry>,
}

impl Approvals {
    /// Checks whether an answer would be refused now: use it as the validator of an update of your
    /// own. Where a request records refusals, only oversized answers are refused here.
    pub fn check(&self, answer: &Answer) -> Result<(), Refusal> {
        self.known(&answer.request)?.admit(answer)
    }

    /// The state of a request, with all answers to it.
    pub fn state(&self, request: &str) -> Option<RequestState> {
        self.find(request).map(Record::standing)
    }

    /// The deadline of a request. It can be read and moved while the request is open.
    pub fn deadline(&self, request: &str) -> Deadline {
        self.find(request).map(|record| record.deadline().clone()).unwrap_or_default()
    }

    /// Decisions that came after the deadline of a request, from people who could have made them in
    /// time, in order, until it is asked again.
    pub fn late(&self, request: &str) -> impl Iterator<Item = &Entry> {
        let entries = self.find(request).map(Record::entries).unwrap_or_default();
        entries.iter().filter(|entry| match &entry.result {
            AnswerResult::Taken(receipt) => receipt.effect == Effect::Late,
            AnswerResult::Refused(_) | AnswerResult::Repeated | AnswerResult::Early => false,
        })
    }

    /// All requests, as the query `approvals` returns them.
    pub fn report(&self) -> Report {
        let requests = self.records.iter().map(Record::standing).collect();
        Report { requests, early: self.early.iter().cloned().collect() }
    }

    pub(super) fn ask(&mut self, rules: Rules, tie: Rc<RequestLink>, now: Timestamp) -> Result<()> {
        let id = rules.id.clone();
        if let Some(record) = self.find_mut(&id) {
            if record.status() != Status::TimedOut {
                return Err(Error::new(format!(
                    "request id {id} was already used in this run: choose another id"
                )));
            }
            record.ask_again(rules, tie, now);
            return Ok(());
        }
        let (mine, others) = self.early.drain(..).partition(|entry| *entry.answer.request == *id);
        self.early = others;
        self.records.push(Record::new(rules, tie, mine.into(), now));
        Ok(())
    }

    /// Passes an answer to its request, or keeps it if the request has not been asked.
    pub(super) fn take(
        &mut self,
        answer: Answer,
        channel: AnswerChannel,
        now: Timestamp,
    ) -> Result<Receipt, Refusal> {
        if let Some(record) = self.find_mut(&answer.request) {
            return record.take(answer, channel, now);
        }
        let refusal = self.unknown(&answer.request);
        // The sender of a signal does not learn that it came too early, so the answer is kept.
        if channel == AnswerChannel::Signal {
            self.early.push_back(Entry { at: now, channel, answer, result: AnswerResult::Early });
            if self.early.len() > EARLY_MAX {
                self.early.pop_front();
            }
        }
        Err(refusal)
    }

    pub(super) fn withdraw(
        &mut self,
        request: &str,
        why: &str,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        match self.find_mut(request) {
            Some(record) => record.withdraw_open(why, now),
            None => Err(self.unknown(request)),
        }
    }

    /// The request with this tie, if it is still the last one of its id.
    pub(super) fn tied(&self, tie: &Rc<RequestLink>) -> Option<&Record> {
        self.records.iter().find(|record| record.is_tied(tie))
    }

    pub(super) fn tied_mut(&mut self, tie: &Rc<RequestLink>) -> Option<&mut Record> {
        self.records.iter_mut().find(|record| record.is_tied(tie))
    }

    fn find(&self, request: &str) -> Option<&Record> {
        self.records.iter().find(|record| record.rules.id == request)
    }

    fn find_mut(&mut self, request: &str) -> Option<&mut Record> {
        self.records.iter_mut().find(|record| record.rules.id == request)
    }

    fn known(&self, request: &str) -> Result<&Record, Refusal> {
        self.find(request).ok_or_else(|| self.unknown(request))
    }

    fn unknown(&self, request: &str) -> Refusal {
        let open = self.records.iter().filter(|record| record.status() == Status::Open);
        let open = open.map(|record| record.rules.id.clone()).collect();
        Refusal::NoSuchRequest { request: request.to_owned(), open }
    }
}
