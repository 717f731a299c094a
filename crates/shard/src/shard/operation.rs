//! Operations of clients and operators on a run that is in memory.

use abide_core::{
    attempt::{AttemptName, AttemptReport},
    event::{RunCancelRequested, RunPaused, RunTerminated, RunUnpaused, SignalReceived},
    ids::{Key, RunId},
    operation::{
        Alive, AnyAnswer, CallError, Cancel, Done, Pause, Query, Repair, ReportAttempt,
        RescheduleTimer, RunOperation, Signal, Terminate, Ticket, Unpause,
    },
    run::{self, Input, Reply, ResolveActivity},
    time::Timestamp,
};

use super::{Shard, waiters::Until};

impl Shard {
    pub(super) fn operate(&mut self, run: RunId, ticket: Ticket, operation: Box<RunOperation>) {
        match *operation {
            RunOperation::Start(start) => return self.start(run, ticket, *start),
            RunOperation::Update(update) => return self.update(run, ticket, update),
            RunOperation::AwaitUpdate(asked) => return self.look_up_update(run, ticket, asked),
            RunOperation::Query(Query { query, .. }) => return self.query(run, ticket, query),
            RunOperation::Describe(_) => return self.describe(run, ticket),
            RunOperation::AwaitClose(_) => return self.await_run(run, ticket, Until::Closed),
            RunOperation::AwaitEvents(asked) => {
                return self.await_run(run, ticket, Until::Events(asked.after));
            }
            RunOperation::AwaitWaits(asked) => {
                return self.await_run(run, ticket, Until::Waits(asked.after));
            }
            RunOperation::Repair(Repair { identity, .. }) => {
                return self.begin_repair(run, ticket, identity);
            }
            RunOperation::ReportAttempt(report) => {
                return self.report_attempt(run, ticket, report);
            }
            RunOperation::Delete(_) => return self.delete(run, ticket),
            RunOperation::Reset(asked) => return self.begin_reset(run, ticket, *asked),
            RunOperation::CreateSchedule(create) => {
                return self.create_schedule(run, ticket, &create);
            }
            RunOperation::ChangeSchedule(change) => {
                return self.change_schedule(run, ticket, *change);
            }
            RunOperation::DeleteSchedule(delete) => {
                return self.delete_schedule(run, ticket, delete);
            }
            RunOperation::DescribeSchedule(_) => return self.describe_schedule(run, ticket),
            RunOperation::Terminate(Terminate { ref target, ref key, .. })
                if target.run.is_none() && self.ended_earlier(run, key.as_ref()) =>
            {
                return self.operated(run, ticket, Ok(Reply::Repeat), None);
            }
            RunOperation::Signal(_)
            | RunOperation::Cancel(_)
            | RunOperation::Terminate(_)
            | RunOperation::Pause(_)
            | RunOperation::Unpause(_)
            | RunOperation::RescheduleTimer(_) => {}
        }
        if let Some(input) = input_of(&operation, self.now()) {
            self.operate_input(run, ticket, operation, input);
        }
    }

    /// Whether a termination that names no run has ended an earlier run than the current one.
    pub(super) fn ended_earlier(&self, run: RunId, key: Option<&Key>) -> bool {
        self.memory.cache.peek(run).is_some_and(|entry| entry.run.ended_earlier(key))
    }

    /// An outside caller reports on an attempt in place of its worker.
    fn report_attempt(&mut self, run: RunId, ticket: Ticket, asked: ReportAttempt) {
        let token = match self.reported_attempt(run, &asked.attempt) {
            Ok(token) => token,
            Err(refusal) => return self.reply(ticket, Err(refusal.into())),
        };
        let (scheduled, start) = (token.scheduled, token.start);
        let input = match asked.report.clone() {
            AttemptReport::Resolved(resolution) => {
                Input::ResolveActivity(ResolveActivity { scheduled, start, resolution })
            }
            AttemptReport::Heartbeat(details) => self.heartbeat(&token, details),
        };
        let reply = self.decide(run, input);
        match reply {
            Ok(Reply::Alive { .. }) => self.attempt_alive(&token),
            Err(error) if Self::busy(&error) => {
                // The parked request names this attempt, even if the activity has another one
                // later.
                let attempt = AttemptName::Token(token);
                let again = ReportAttempt { attempt, ..asked };
                return self.park_busy(run, super::Todo::Request(ticket, again.into()));
            }
            Ok(_) | Err(_) => {}
        }
        self.operated(run, ticket, reply, None);
    }

    /// The due time that the reschedule with this key set, now or when it first came.
    pub(super) fn moved_to(&self, run: RunId, operation: &RunOperation) -> Option<Timestamp> {
        let RunOperation::RescheduleTimer(RescheduleTimer { key: Some(key), .. }) = operation
        else {
            return None;
        };
        self.memory.cache.peek(run)?.run.moved_to(key)
    }

    /// Answers with the run's reply, once that is durable.
    pub(super) fn operated(
        &mut self,
        run: RunId,
        ticket: Ticket,
        reply: Result<Reply, CallError>,
        fire_at: Option<Timestamp>,
    ) {
        let answer = reply.map(|reply| match reply {
            Reply::Alive { cancel_requested } => Alive { cancel_requested }.into(),
            reply => Done { run, repeat: reply == Reply::Repeat, fire_at }.into(),
        });
        self.reply_after(run, ticket, answer);
    }

    fn describe(&mut self, run: RunId, ticket: Ticket) {
        let Some(entry) = self.memory.cache.peek(run) else { return };
        let shown = AnyAnswer::Description(Box::new(entry.run.describe()));
        self.reply_after(run, ticket, Ok(shown));
    }
}

/// The input of an operation that is a single one.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others are more than an input")]
fn input_of(operation: &RunOperation, now: Timestamp) -> Option<Input> {
    Some(match operation.clone() {
        RunOperation::Signal(Signal { signal, extension, .. }) => {
            let signal = SignalReceived { received_at: now, ..signal };
            Input::Signal(Box::new(run::Signal { signal, extension }))
        }
        RunOperation::Cancel(Cancel { reason, identity, key, .. }) => {
            let (source, received_at) = (None, now);
            Input::RequestCancel(RunCancelRequested { reason, identity, key, source, received_at })
        }
        RunOperation::Terminate(Terminate { reason, identity, details, key, .. }) => {
            Input::Terminate(RunTerminated { reason, identity, details, key, reset: None })
        }
        RunOperation::Pause(Pause { reason, identity, key, .. }) => {
            Input::Pause(RunPaused { reason, identity, key })
        }
        RunOperation::Unpause(Unpause { reason, identity, key, .. }) => {
            Input::Unpause(RunUnpaused { reason, identity, key })
        }
        RunOperation::RescheduleTimer(asked) => {
            let RescheduleTimer { what, fire_at, after, identity, key, .. } = asked;
            Input::RescheduleTimer(run::RescheduleTimer { what, fire_at, after, identity, key })
        }
        _ => return None,
    })
}
