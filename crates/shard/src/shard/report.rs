//! Reports of workers on the work that they have.

use std::collections::BTreeSet;

use abide_core::{
    attempt::ActivityToken,
    command::Ask,
    event::Body,
    ids::{EventNumber, RunId},
    operation::{CallError, Ticket},
    report::{Report, ReportAnswer, TaskCompletion, TaskToken},
    run::{CompleteTask, FailTask, Input, KnownUpdate, Reply, ResolveActivity},
};

use super::{Reading, Shard, Todo, load::CarryOver, request::Request};
use crate::message::Fetch;

impl Shard {
    pub(super) fn take_report(&mut self, run: RunId, ticket: Ticket, report: Box<Report>) {
        // A run is busy only for reports on activities, and only while a task is started.
        let on_task = matches!(*report, Report::CompleteTask(..) | Report::FailTask { .. });
        let kept = self.turn(run).filter(|_| !on_task).map(|_| report.clone());
        let mut beating = None;
        let input = match *report {
            Report::CompleteTask(token, completion) => {
                return self.complete_task(run, ticket, token, completion);
            }
            Report::PresentAttempt(token, session) => {
                return self.present_attempt(run, ticket, &token, session);
            }
            Report::AnswerQuery(token, answer) => {
                return self.query_answered(ticket, &token, answer);
            }
            Report::FailTask { token, cause, failure, blocked } => {
                Input::FailTask(Box::new(FailTask { start: token.start, cause, failure, blocked }))
            }
            Report::ResolveActivity(ActivityToken { scheduled, start, .. }, resolution) => {
                Input::ResolveActivity(ResolveActivity { scheduled, start, resolution })
            }
            Report::Heartbeat(token, details) => {
                let input = self.heartbeat(&token, details);
                beating = Some(token);
                input
            }
            Report::DetachAttempt(ActivityToken { scheduled, start, .. }) => {
                Input::DetachAttempt { scheduled, start }
            }
        };
        let reply = self.decide(run, input);
        match (&reply, beating, kept) {
            // A heartbeat shows that the worker still has the attempt.
            (Ok(Reply::Alive { .. }), Some(token), _) => self.attempt_alive(&token),
            (Err(error), _, Some(report)) if Self::busy(error) => {
                return self.park_busy(run, Todo::Request(ticket, Request::Report(report)));
            }
            _ => {}
        }
        self.reported(run, ticket, reply);
    }

    /// Acknowledges with the run's reply, once that is durable.
    fn reported(&mut self, run: RunId, ticket: Ticket, reply: Result<Reply, CallError>) {
        let answer = reply.map(|reply| match reply {
            Reply::Alive { cancel_requested } => ReportAnswer::Alive { cancel_requested },
            Reply::TaskTaken { completed } => ReportAnswer::TaskTaken { completed },
            Reply::TaskDiscarded => ReportAnswer::TaskDiscarded,
            Reply::TaskRefused { cause, message } => ReportAnswer::TaskRefused { cause, message },
            reply => ReportAnswer::Done { run, repeat: reply == Reply::Repeat },
        });
        self.acknowledge_after(run, ticket, answer);
    }

    fn complete_task(
        &mut self,
        run: RunId,
        ticket: Ticket,
        token: TaskToken,
        mut completion: Box<TaskCompletion>,
    ) {
        if !self.check_attributes(run, ticket, &token, &mut completion.commands) {
            return;
        }
        let wanted = self.carried_events(run, &completion);
        if wanted.is_empty() {
            return self.finish_task(run, ticket, &token, *completion, Vec::new());
        }
        let carried = CarryOver { run, ticket, token, completion, wanted, found: Vec::new() };
        let fetch = Fetch::Log(run, 0, self.log_limit());
        self.fetch(Reading::Carried(Box::new(carried)), fetch);
    }

    /// The event bodies to carry over have been read.
    pub(super) fn finish_carried(&mut self, carried: CarryOver) {
        let CarryOver { run, ticket, token, completion, found, .. } = carried;
        self.finish_task(run, ticket, &token, *completion, found);
    }

    /// Numbers of the events whose bodies a continue-as-new carries over.
    fn carried_events(&self, run: RunId, completion: &TaskCompletion) -> BTreeSet<EventNumber> {
        let last = completion.commands.last().map(|command| &command.ask);
        let Some(Ask::ContinueAsNew(command)) = last else {
            return BTreeSet::new();
        };
        let Some(entry) = self.memory.cache.peek(run) else { return BTreeSet::new() };
        let accepted =
            command.updates.iter().filter_map(|update| match entry.run.updates.get(update) {
                Some(KnownUpdate::Accepted { number, .. }) => Some(*number),
                Some(
                    KnownUpdate::Admitted(_)
                    | KnownUpdate::Completed { .. }
                    | KnownUpdate::Rejected { .. },
                )
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
        let turn = self.memory.cache.peek(run).and_then(|entry| entry.run.volatile.turn.clone());
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
            Err(error) => return self.acknowledge(ticket, Err(error)),
        };
        let reply = decision.reply.clone();
        let mut decisions = vec![decision];
        let mut started = Vec::new();
        if let (Reply::TaskTaken { .. }, Some(turn)) = (&reply, &turn) {
            if let Some(entry) = self.memory.cache.get(run) {
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
        self.reported(run, ticket, Ok(reply));
    }
}
