//! Requests of clients and workers: found, judged, answered once durable.

use std::collections::BTreeSet;

use abide_core::{
    attempt::{ActivityToken, AttemptReport},
    call::{Call, CallError, CallReply, TaskCompletion, TaskToken, Ticket},
    command::Ask,
    event::{Body, RunCancelRequested, RunTerminated},
    ids::{EventNumber, RunId},
    run::{
        CompleteTask, FailTask, Input, Refusal, Reply, RescheduleTimer, ResolveActivity, Signal,
        Update,
    },
};

use super::{Reading, Shard, Todo, load::Carried, open::State, waiters::Until};
use crate::{message::Fetch, validate};

impl Shard {
    pub(super) fn receive_call(&mut self, ticket: Ticket, mut call: Call) {
        self.calls.insert(ticket, call.reads_only().then(|| Box::new(call.clone())));
        match (self.state, &self.read_only) {
            (State::Open, _) => {}
            (State::Halted, _) => return self.reply(ticket, Err(CallError::NotServed)),
            (State::Closed | State::Reading | State::Claiming, None) => {
                return self.await_opening(ticket, call);
            }
            (State::Closed | State::Reading | State::Claiming, Some(why)) => {
                if !call.reads_only() && !matches!(call, Call::AnswerQuery(..)) {
                    let unavailable = CallError::Unavailable(why.clone());
                    return self.reply(ticket, Err(unavailable));
                }
            }
        }
        if let Err(error) = validate::check(&call, &self.limits, self.now()) {
            return self.reply(ticket, Err(error));
        }
        if let Call::AnswerQuery(token, answer) = call {
            return self.query_answered(ticket, token, answer);
        }
        if let Call::Start(start) = &mut call {
            start.key_signal();
        }
        let (workflow, run) = call.place();
        let workflow = workflow.clone();
        let todo = Todo::Call(ticket, Box::new(call));
        match run {
            Some(run) => self.with_run(run, todo),
            None => self.with_head(&workflow, todo),
        }
    }

    /// The shard is on its way into memory; it will not be long.
    fn await_opening(&mut self, ticket: Ticket, call: Call) {
        if self.early.len() < self.limits.waiting_requests {
            self.early.push((ticket, call));
        } else {
            self.reply(ticket, Err(CallError::Overloaded));
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
            Todo::Call(ticket, call) => self.serve(run, ticket, call),
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

    fn serve(&mut self, run: RunId, ticket: Ticket, call: Box<Call>) {
        let belongs =
            self.cache.peek(run).is_some_and(|entry| *call.place().0 == entry.run.workflow);
        if !belongs {
            return self.reply(ticket, Err(CallError::NotFound));
        }
        match *call {
            Call::Start(start) => self.start(run, ticket, *start),
            Call::Update { .. } => self.update(run, ticket, call),
            Call::AwaitUpdate { .. } => self.look_up_update(run, ticket, call),
            Call::Query { query, .. } => self.query(run, ticket, query),
            Call::Describe(_) => self.describe(run, ticket),
            Call::AwaitClose(_) => self.await_run(run, ticket, Until::Closed),
            Call::AwaitEvents(_, after) => {
                self.await_run(run, ticket, Until::Events(after));
            }
            Call::AwaitWaits(_, after) => self.await_run(run, ticket, Until::Waits(after)),
            Call::CompleteTask(ref token, ref completion) => {
                let (token, completion) = (token.clone(), completion.clone());
                self.complete_task(run, ticket, token, *completion, call);
            }
            Call::PresentAttempt(token, session) => {
                self.present_attempt(run, ticket, &token, session);
            }
            Call::Repair { identity, .. } => self.begin_repair(run, ticket, identity),
            Call::ReportAttempt(ref name, _) => match self.reported_attempt(run, name) {
                Ok(token) => self.serve_input(run, ticket, named(*call, token)),
                Err(refusal) => self.reply(ticket, Err(refusal.into())),
            },
            other => self.serve_input(run, ticket, other),
        }
    }

    /// A call that is one input to the run.
    fn serve_input(&mut self, run: RunId, ticket: Ticket, call: Call) {
        match self.input_of(call.clone()) {
            Some(input) => match self.decide_spoken_for(run, &call, input) {
                Err(error) if Self::busy(&error) => {
                    self.park_busy(run, Todo::Call(ticket, Box::new(call)));
                }
                reply => self.answer(run, ticket, reply),
            },
            None => self.reply(ticket, Err(CallError::StaleQuery)),
        }
    }

    /// A worker that heartbeats or answers for an attempt has not lost it.
    fn decide_spoken_for(
        &mut self,
        run: RunId,
        call: &Call,
        input: Input,
    ) -> Result<Reply, CallError> {
        let reply = self.decide(run, input);
        if let (Ok(Reply::Alive { .. }), Call::Heartbeat(token, _)) = (&reply, call) {
            self.attempt_alive(token);
        }
        reply
    }

    /// Calls that are one input to the run.
    fn input_of(&self, call: Call) -> Option<Input> {
        let received_at = self.now();
        Some(match call {
            Call::Signal(_, mut signal, extension) => {
                signal.received_at = received_at;
                Input::Signal(Box::new(Signal { signal, extension }))
            }
            Call::RequestCancel { reason, identity, key, .. } => {
                let source = None;
                let request = RunCancelRequested { reason, identity, key, source, received_at };
                Input::RequestCancel(request)
            }
            Call::Terminate { reason, identity, details, key, .. } => {
                Input::Terminate(RunTerminated { reason, identity, details, key })
            }
            Call::Pause(_, paused) => Input::Pause(paused),
            Call::Unpause(_, unpaused) => Input::Unpause(unpaused),
            Call::RescheduleTimer { what, fire_at, identity, key, .. } => {
                Input::RescheduleTimer(RescheduleTimer { what, fire_at, identity, key })
            }
            Call::FailTask { token, cause, failure, blocked } => {
                Input::FailTask(Box::new(FailTask { start: token.start, cause, failure, blocked }))
            }
            Call::ResolveActivity(token, resolution) => Input::ResolveActivity(ResolveActivity {
                scheduled: token.scheduled,
                start: token.start,
                resolution,
            }),
            Call::Heartbeat(token, details) => {
                Input::Heartbeat { scheduled: token.scheduled, start: token.start, details }
            }
            Call::DetachAttempt(token) => {
                Input::DetachAttempt { scheduled: token.scheduled, start: token.start }
            }
            Call::Start(_)
            | Call::ReportAttempt(..)
            | Call::Update { .. }
            | Call::AwaitUpdate { .. }
            | Call::Query { .. }
            | Call::Repair { .. }
            | Call::Describe(_)
            | Call::AwaitClose(_)
            | Call::AwaitEvents(..)
            | Call::AwaitWaits(..)
            | Call::CompleteTask(..)
            | Call::AnswerQuery(..)
            | Call::PresentAttempt(..) => return None,
        })
    }

    /// Answers with what the run said, once that is durable.
    pub(super) fn answer(&mut self, run: RunId, ticket: Ticket, reply: Result<Reply, CallError>) {
        let reply = reply.map(|reply| match reply {
            Reply::Repeat => CallReply::Done { run, repeat: true },
            Reply::Alive { cancel_requested } => CallReply::Alive { cancel_requested },
            Reply::TaskTaken { completed } => CallReply::TaskTaken { completed },
            Reply::TaskDiscarded => CallReply::TaskDiscarded,
            Reply::TaskRefused { cause, message } => CallReply::TaskRefused { cause, message },
            Reply::Update(stage) => CallReply::Update { run, stage },
            Reply::Done
            | Reply::NotDue
            | Reply::TaskGiven(_)
            | Reply::ActivityGiven { .. }
            | Reply::Delivered(_) => CallReply::Done { run, repeat: false },
        });
        self.reply_after(run, ticket, reply);
    }

    fn describe(&mut self, run: RunId, ticket: Ticket) {
        let Some(entry) = self.cache.peek(run) else { return };
        let reply = CallReply::Description(Box::new(entry.run.describe()));
        self.reply_after(run, ticket, Ok(reply));
    }

    fn complete_task(
        &mut self,
        run: RunId,
        ticket: Ticket,
        token: TaskToken,
        completion: TaskCompletion,
        call: Box<Call>,
    ) {
        let wanted = self.carried_events(run, &completion);
        if wanted.is_empty() {
            return self.finish_task(run, ticket, &token, completion, Vec::new());
        }
        let carried = Carried { run, ticket, call, wanted, found: Vec::new() };
        let fetch = Fetch::Log(run, 0, self.limits.page_rows);
        self.fetch(Reading::Carried(Box::new(carried)), fetch);
    }

    /// The bodies that are carried over are here.
    pub(super) fn complete_carried(&mut self, carried: Carried) {
        let Call::CompleteTask(token, completion) = *carried.call else { return };
        if self.cache.peek(carried.run).is_none() {
            // The run has left memory, so its task was not started any more.
            return self.reply(carried.ticket, Err(Refusal::StaleTask.into()));
        }
        self.finish_task(carried.run, carried.ticket, &token, *completion, carried.found);
    }

    /// Numbers of the events whose bodies a continue-as-new takes along.
    fn carried_events(&self, run: RunId, completion: &TaskCompletion) -> BTreeSet<EventNumber> {
        let last = completion.commands.last().map(|command| &command.ask);
        let Some(Ask::ContinueAsNew(command)) = last else {
            return BTreeSet::new();
        };
        let Some(entry) = self.cache.peek(run) else { return BTreeSet::new() };
        let accepted =
            command.updates.iter().filter_map(|update| match entry.run.updates.get(update) {
                Some(Update::Accepted { number, .. }) => Some(*number),
                Some(Update::Admitted(_) | Update::Completed { .. } | Update::Rejected { .. })
                | None => None,
            });
        command.signals.iter().copied().chain(accepted).collect()
    }

    fn finish_task(
        &mut self,
        run: RunId,
        ticket: Ticket,
        token: &TaskToken,
        completion: TaskCompletion,
        carried: Vec<Body>,
    ) {
        let turn = self.cache.peek(run).and_then(|entry| entry.run.volatile.turn.clone());
        let input = CompleteTask {
            start: token.start,
            commands: completion.commands,
            flags: completion.flags,
            sdk_metadata: completion.sdk_metadata,
            force_next: completion.force_next,
            carried,
        };
        let decision = match self.judge(run, Input::CompleteTask(Box::new(input))) {
            Ok(decision) => decision,
            Err(error) => return self.reply(ticket, Err(error)),
        };
        let reply = decision.reply.clone();
        let mut decisions = vec![decision];
        let mut started = Vec::new();
        if let (Reply::TaskTaken { .. }, Some(turn)) = (&reply, &turn) {
            if let Some(entry) = self.cache.get(run) {
                entry.affinity = Some(turn.session.clone());
            }
            for (scheduled, decision) in self.start_eager(run, turn, completion.eager_activities) {
                started.push(scheduled);
                decisions.push(decision);
            }
        }
        self.record(run, decisions);
        if let Some(turn) = turn {
            self.dispatch_eager(run, &turn, &started);
        }
        self.answer(run, ticket, Ok(reply));
    }
}

/// What a worker would say of the attempt.
fn named(call: Call, token: ActivityToken) -> Call {
    match call {
        Call::ReportAttempt(_, AttemptReport::Resolved(resolution)) => {
            Call::ResolveActivity(token, resolution)
        }
        Call::ReportAttempt(_, AttemptReport::Heartbeat(details)) => {
            Call::Heartbeat(token, details)
        }
        other => other,
    }
}
