//! Requests: validated, routed to their run, and answered once durable. Operations of clients and
//! operators are in `operation`, reports of workers in `report`.

use abide_core::{
    ids::{RunId, SessionId, WorkflowKey},
    operation::{AnyAnswer, CallError, RunOperation, Ticket},
    report::{Report, ReportAnswer},
    run::Input,
};

use super::{Shard, Todo, open::State};
use crate::{message::Output, validate};

/// A request to the shard.
#[derive(Clone, Debug)]
pub(super) enum Request {
    /// From a client or an operator.
    Operation(Box<RunOperation>),
    Report(Box<Report>),
}

impl<O: Into<RunOperation>> From<O> for Request {
    fn from(operation: O) -> Self {
        Self::Operation(Box::new(operation.into()))
    }
}

impl Request {
    /// The workflow of the request, and the run if it names one.
    pub(super) const fn place(&self) -> (&WorkflowKey, Option<RunId>) {
        match self {
            Self::Operation(operation) => operation.place(),
            Self::Report(report) => {
                let (workflow, run) = report.place();
                (workflow, Some(run))
            }
        }
    }

    /// Whether it can be served while the store accepts no writes.
    fn reads_only(&self) -> bool {
        match self {
            Self::Operation(operation) => operation.name().repeatable(),
            Self::Report(report) => matches!(**report, Report::AnswerQuery(..)),
        }
    }

    fn pending(&self) -> Unanswered {
        match self {
            Self::Operation(operation) => {
                let kept = operation.name().repeatable().then(|| operation.clone());
                Unanswered::Operation(kept)
            }
            Self::Report(report) => {
                let presented = match &**report {
                    Report::PresentAttempt(_, session) => Some(session.clone()),
                    Report::CompleteTask(..)
                    | Report::FailTask { .. }
                    | Report::AnswerQuery(..)
                    | Report::ResolveActivity(..)
                    | Report::Heartbeat(..)
                    | Report::DetachAttempt(_) => None,
                };
                Unanswered::Report(presented)
            }
        }
    }
}

/// A request without an answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// An operation. One that changes nothing is kept, so that it can be retried.
    Operation(Option<Box<RunOperation>>),
    /// A report, with the session if that presents an attempt. It is never kept.
    Report(Option<SessionId>),
}

impl Unanswered {
    /// The output that fails the request with this error.
    pub(super) fn refused(&self, ticket: Ticket, error: CallError) -> Output {
        match self {
            Self::Operation(_) => Output::Reply(ticket, Err(error)),
            Self::Report(_) => Output::Acknowledge(ticket, Err(error)),
        }
    }
}

impl Shard {
    pub(super) fn receive(&mut self, ticket: Ticket, mut request: Request) {
        self.calls.insert(ticket, request.pending());
        match (self.state, &self.memory.read_only) {
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
                // A query's answer does not need the run in memory.
                if let Report::AnswerQuery(token, answer) = &mut **report {
                    let answer = std::mem::replace(answer, Ok(Vec::new()));
                    return self.query_answered(ticket, token, answer);
                }
            }
        }
        self.with_attributes(ticket, request);
    }

    /// Serves a valid request with its run.
    pub(super) fn route(&mut self, ticket: Ticket, request: Request) {
        let (workflow, run) = request.place();
        let workflow = workflow.clone();
        let todo = Todo::Request(ticket, request);
        match run {
            Some(run) => self.with_run(run, todo),
            None => self.with_head(&workflow, todo),
        }
    }

    /// Keeps a request until the shard is open, which takes a moment.
    fn await_opening(&mut self, ticket: Ticket, request: Request) {
        if self.memory.early.len() < self.limits.waiting_requests {
            self.memory.early.push((ticket, request));
        } else {
            self.refuse(ticket, CallError::Overloaded);
        }
    }

    /// The caller has disconnected: no answer is sent. The request may still take effect.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        self.calls.remove(&ticket);
        self.memory.begun.remove(&ticket);
        self.memory.queries.remove(ticket);
        self.memory.waiters.forget(ticket);
        self.unpark(ticket);
    }

    /// Performs work with a run that is in memory.
    pub(super) fn carry_on(&mut self, run: RunId, todo: Todo) {
        let Some(todo) = self.pass_gate(run, todo) else { return };
        match todo {
            Todo::Request(ticket, request) => self.serve(run, ticket, request),
            Todo::Scanned(scan) => self.start_unless_passed(run, *scan),
            Todo::Repeated(ticket, start) => self.start(run, ticket, *start),
            Todo::Matched(offer, worker) => self.start_work(run, offer, worker),
            Todo::Due(at, timer) => self.fall_due(run, at, timer),
            Todo::CheckAgain(timer) => self.look_again(run, timer),
            Todo::Grace(scheduled) => self.lose_attempt(run, scheduled),
            Todo::Await(scheduled) => self.await_worker(run, scheduled),
            Todo::CheckTask => self.check_task(run),
            Todo::Deleted => self.deleted(run),
            Todo::ResetAfter(resetting) => self.reset_after(run, *resetting),
            Todo::ResetRead(resetting) => self.read_for_reset(*resetting),
            Todo::ResetNow(resetting) => self.reset_now(*resetting),
            Todo::Answered(key, answer) => self.record_answer(run, key, answer),
            Todo::Deliver(envelope) => self.deliver_to(run, *envelope),
            Todo::LoseTask(start) => self.decide_quietly(run, Input::LoseTask { start }),
            Todo::TimeOutTask(start) => self.decide_quietly(run, Input::TimeOutTask { start }),
            Todo::Finish(carried) => self.finish_carried(*carried),
            Todo::Reoffer => self.offer_task(run),
            Todo::Requery(ticket) => self.offer_query(ticket),
            Todo::EnsureRows => self.ensure_rows(run),
            Todo::Repair(repair) => self.repair(run, *repair),
        }
    }

    fn serve(&mut self, run: RunId, ticket: Ticket, request: Request) {
        let belongs = self
            .memory
            .cache
            .peek(run)
            .is_some_and(|entry| *request.place().0 == entry.run.workflow);
        if !belongs {
            return self.refuse(ticket, CallError::NotFound);
        }
        match request {
            Request::Operation(operation) => self.operate(run, ticket, operation),
            Request::Report(report) => self.take_report(run, ticket, report),
        }
    }

    /// Performs an operation that is a single input of the run. It waits while the run is busy.
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
            reply => {
                let fire_at = self.moved_to(run, &operation);
                self.operated(run, ticket, reply, fire_at);
            }
        }
    }

    /// Fails a request at once.
    pub(super) fn refuse(&mut self, ticket: Ticket, error: CallError) {
        match self.calls.get(&ticket) {
            Some(Unanswered::Operation(_)) => self.reply(ticket, Err(error)),
            Some(Unanswered::Report(_)) => self.acknowledge(ticket, Err(error)),
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

    /// Answers an operation once all writes of the run so far are durable.
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

    /// Acknowledges a report at once.
    pub(super) fn acknowledge(&mut self, ticket: Ticket, answer: Result<ReportAnswer, CallError>) {
        if self.calls.remove(&ticket).is_some() {
            self.emit(Output::Acknowledge(ticket, answer));
        }
    }

    /// Acknowledges a report once all writes of the run so far are durable.
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
