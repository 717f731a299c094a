//! Requests: found, judged, answered once durable. What clients and operators ask for is in `operation`,
//! what workers say in `report`.

use abide_core::{
    ids::{RunId, WorkflowKey},
    operation::{AnyAnswer, CallError, RunOperation, Ticket},
    report::{Report, ReportAnswer},
    run::Input,
};

use super::{Shard, Todo, open::State};
use crate::{message::Output, validate};

/// What a shard is asked.
#[derive(Clone, Debug)]
pub(super) enum Request {
    /// By a client or an operator.
    Operation(Box<RunOperation>),
    /// By a worker.
    Report(Box<Report>),
}

impl<O: Into<RunOperation>> From<O> for Request {
    fn from(operation: O) -> Self {
        Self::Operation(Box::new(operation.into()))
    }
}

impl Request {
    /// The workflow that it is about, and the run if it names one.
    pub(super) const fn place(&self) -> (&WorkflowKey, Option<RunId>) {
        match self {
            Self::Operation(operation) => operation.place(),
            Self::Report(report) => {
                let (workflow, run) = report.place();
                (workflow, Some(run))
            }
        }
    }

    /// It can be served while the store takes no writes.
    fn reads_only(&self) -> bool {
        match self {
            Self::Operation(operation) => operation.name().repeatable(),
            Self::Report(report) => matches!(**report, Report::AnswerQuery(..)),
        }
    }

    fn pending(&self) -> Pending {
        match self {
            Self::Operation(operation) => {
                let kept = operation.name().repeatable().then(|| operation.clone());
                Pending::Operation(kept)
            }
            Self::Report(_) => Pending::Report,
        }
    }
}

/// A request that has no answer yet.
#[derive(Debug)]
pub(super) enum Pending {
    /// An operation. One that changes nothing is kept, to be served again.
    Operation(Option<Box<RunOperation>>),
    /// A report.
    Report,
}

impl Pending {
    /// Tells whoever waits that there is no answer.
    pub(super) fn refused(&self, ticket: Ticket, error: CallError) -> Output {
        match self {
            Self::Operation(_) => Output::Reply(ticket, Err(error)),
            Self::Report => Output::Acknowledge(ticket, Err(error)),
        }
    }
}

impl Shard {
    pub(super) fn receive(&mut self, ticket: Ticket, mut request: Request) {
        self.calls.insert(ticket, request.pending());
        match (self.state, &self.read_only) {
            (State::Open, _) => {}
            (State::Halted, _) => return self.refuse(ticket, CallError::NotServed),
            (State::Closed | State::Reading | State::Claiming, None) => {
                return self.await_opening(ticket, request);
            }
            (State::Closed | State::Reading | State::Claiming, Some(why)) => {
                if !request.reads_only() {
                    let unavailable = CallError::Unavailable(why.clone());
                    return self.refuse(ticket, unavailable);
                }
            }
        }
        let checked = match &request {
            Request::Operation(operation) => {
                validate::operation(operation, &self.limits, self.now())
            }
            Request::Report(report) => validate::report(report, &self.limits),
        };
        if let Err(error) = checked {
            return self.refuse(ticket, error);
        }
        match &mut request {
            Request::Operation(operation) => {
                if let RunOperation::Start(start) = &mut **operation {
                    start.key_signal();
                }
            }
            Request::Report(report) => {
                // The run need not be in memory.
                if let Report::AnswerQuery(token, answer) = &mut **report {
                    let answer = std::mem::replace(answer, Ok(Vec::new()));
                    return self.query_answered(ticket, token, answer);
                }
            }
        }
        let (workflow, run) = request.place();
        let workflow = workflow.clone();
        let todo = Todo::Request(ticket, request);
        match run {
            Some(run) => self.with_run(run, todo),
            None => self.with_head(&workflow, todo),
        }
    }

    /// The shard is on its way into memory; it will not be long.
    fn await_opening(&mut self, ticket: Ticket, request: Request) {
        if self.early.len() < self.limits.waiting_requests {
            self.early.push((ticket, request));
        } else {
            self.refuse(ticket, CallError::Overloaded);
        }
    }

    /// Nobody waits for the answer: it is not sent. What was asked for may still happen.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        self.calls.remove(&ticket);
        self.begun.remove(&ticket);
        self.queries.remove(&ticket);
        self.waiters.forget(ticket);
    }

    /// Does something with a run that is in memory.
    pub(super) fn carry_on(&mut self, run: RunId, todo: Todo) {
        match todo {
            Todo::Request(ticket, request) => self.serve(run, ticket, request),
            Todo::Scanned(scan) => self.start_unless_passed(run, *scan),
            Todo::Repeated(ticket, start) => self.start(run, ticket, *start),
            Todo::Matched(offer, worker) => self.start_work(run, offer, worker),
            Todo::Due(at, timer) => self.fall_due(run, at, timer),
            Todo::LookAgain(timer) => self.look_again(run, timer),
            Todo::Grace(scheduled) => self.lose_attempt(run, scheduled),
            Todo::Answered(key, answer) => self.record_answer(run, key, answer),
            Todo::Deliver(envelope) => self.deliver_to(run, *envelope),
            Todo::Reoffer => self.offer_task(run),
            Todo::Requery(ticket) => self.offer_query(ticket),
            Todo::EnsureRows => self.ensure_rows(run),
            Todo::Repair(repair) => self.repair(run, *repair),
        }
    }

    fn serve(&mut self, run: RunId, ticket: Ticket, request: Request) {
        let belongs =
            self.cache.peek(run).is_some_and(|entry| *request.place().0 == entry.run.workflow);
        if !belongs {
            return self.refuse(ticket, CallError::NotFound);
        }
        match request {
            Request::Operation(operation) => self.operate(run, ticket, operation),
            Request::Report(report) => self.take_report(run, ticket, report),
        }
    }

    /// An operation that is one input to the run. It waits while the run cannot take it.
    pub(super) fn operate_input(
        &mut self,
        run: RunId,
        ticket: Ticket,
        operation: Box<RunOperation>,
        input: Input,
    ) {
        match self.decide(run, input) {
            Err(error) if Self::busy(&error) => {
                self.park_busy(run, Todo::Request(ticket, Request::Operation(operation)));
            }
            reply => self.operated(run, ticket, reply),
        }
    }

    /// Answers a request at once, with nothing.
    pub(super) fn refuse(&mut self, ticket: Ticket, error: CallError) {
        match self.calls.get(&ticket) {
            Some(Pending::Operation(_)) => self.reply(ticket, Err(error)),
            Some(Pending::Report) => self.acknowledge(ticket, Err(error)),
            None => {}
        }
    }

    /// Answers an operation at once.
    pub(super) fn reply(&mut self, ticket: Ticket, reply: Result<AnyAnswer, CallError>) {
        let (begun, reply) = self.with_start(ticket, reply);
        match begun {
            Some(run) => self.reply_after(run, ticket, reply),
            None if self.calls.remove(&ticket).is_some() => self.emit(Output::Reply(ticket, reply)),
            None => {}
        }
    }

    /// Answers an operation once everything known of the run is durable.
    pub(super) fn reply_after(
        &mut self,
        run: RunId,
        ticket: Ticket,
        reply: Result<AnyAnswer, CallError>,
    ) {
        let (_, reply) = self.with_start(ticket, reply);
        if self.calls.contains_key(&ticket) {
            self.emit_after(run, Output::Reply(ticket, reply));
        }
    }

    /// Answers a report at once.
    pub(super) fn acknowledge(&mut self, ticket: Ticket, answer: Result<ReportAnswer, CallError>) {
        if self.calls.remove(&ticket).is_some() {
            self.emit(Output::Acknowledge(ticket, answer));
        }
    }

    /// Answers a report once everything known of the run is durable.
    pub(super) fn acknowledge_after(
        &mut self,
        run: RunId,
        ticket: Ticket,
        answer: Result<ReportAnswer, CallError>,
    ) {
        if self.calls.contains_key(&ticket) {
            self.emit_after(run, Output::Acknowledge(ticket, answer));
        }
    }
}
