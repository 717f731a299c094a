//! All requests of a run, as a part of the workflow's state.

use super::{
    Answer, Effect, Entry, Judgement, Receipt, Refusal, Report, Standing, Status, Way,
    record::{Abandoned, Record},
    rules::Rules,
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
    /// Signals to requests that have not been asked.
    early: Vec<Entry>,
}

impl Approvals {
    /// Why an answer would be refused now, if it would: the validator of an update of your own.
    pub fn check(&self, answer: &Answer) -> Result<(), Refusal> {
        let record = self.known(&answer.request)?;
        if record.repeated(answer).is_some() { Ok(()) } else { record.judge(answer) }
    }

    /// How a request stands, with everything that was said to it.
    pub fn standing(&self, request: &str) -> Option<Standing> {
        self.find(request).map(Record::standing)
    }

    /// The deadline of a request, which can be read and moved while it is open. Take it when it is
    /// needed: a request that somebody handed over has a new one.
    pub fn deadline(&self, request: &str) -> Deadline {
        self.find(request).map(|record| record.deadline().clone()).unwrap_or_default()
    }

    /// Decisions that came after the deadline of a request, in order, until it is asked again.
    pub fn late(&self, request: &str) -> impl Iterator<Item = &Entry> {
        let entries = self.find(request).map(Record::entries).unwrap_or_default();
        entries.iter().filter(|entry| match &entry.judgement {
            Judgement::Taken(receipt) => receipt.effect == Effect::Late,
            Judgement::Refused(_) | Judgement::Repeated | Judgement::Early => false,
        })
    }

    /// Everything, as the query `approvals` tells it.
    pub fn report(&self) -> Report {
        let requests = self.records.iter().map(Record::standing).collect();
        Report { requests, early: self.early.clone() }
    }

    /// A request is asked.
    pub(super) fn ask(&mut self, rules: Rules, abandoned: Abandoned, now: Timestamp) -> Result<()> {
        let id = rules.id.clone();
        if let Some(record) = self.find_mut(&id) {
            if record.status() != Status::TimedOut {
                return Err(Error::fail(format!(
                    "request {id} was asked before in this run: give this one another id"
                )));
            }
            record.ask_again(rules, abandoned, now);
            return Ok(());
        }
        let (mine, others) = self.early.drain(..).partition(|entry| *entry.answer.request == *id);
        self.early = others;
        self.records.push(Record::new(rules, abandoned, mine, now));
        Ok(())
    }

    /// An answer has come.
    pub(super) fn take(
        &mut self,
        answer: Answer,
        way: Way,
        now: Timestamp,
    ) -> Result<Receipt, Refusal> {
        if let Some(record) = self.find_mut(&answer.request) {
            return record.take(answer, way, now);
        }
        let refusal = self.unknown(&answer.request);
        // The sender of a signal is not told that it came too early, so it is kept.
        if way == Way::Signal {
            self.early.push(Entry { at: now, way, answer, judgement: Judgement::Early });
        }
        Err(refusal)
    }

    pub(super) fn withdraw(
        &mut self,
        request: &str,
        why: &str,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let record = match self.find_mut(request) {
            Some(record) => record,
            None => return Err(self.unknown(request)),
        };
        if record.status() != Status::Open {
            return Err(Refusal::Closed { request: request.to_owned() });
        }
        record.withdraw(None, Some(why.to_owned()), now);
        Ok(())
    }

    pub(super) fn find(&self, request: &str) -> Option<&Record> {
        self.records.iter().find(|record| record.rules.id == request)
    }

    pub(super) fn find_mut(&mut self, request: &str) -> Option<&mut Record> {
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
