//! Validates requests before anything is read or written: names, sizes, combinations.

use abide_core::{
    attempt::{AttemptName, AttemptReport},
    event::{SignalReceived, UpdateRequest},
    failure::Failure,
    ids::{Key, UpdateId, WorkflowKey},
    limits::{InvalidField, Limits},
    operation::{
        AwaitClose, AwaitEvents, AwaitUpdate, AwaitWaits, CallError, Cancel, Delete,
        DeleteSchedule, Describe, DescribeSchedule, OperationName, Pause, Query, Repair,
        ReportAttempt, RescheduleTimer, Reset, RunOperation, RunTarget, Signal, Start, Terminate,
        Unpause, Update,
    },
    payload::{self, Extension, PayloadMap, Payloads},
    report::Report,
    run::{Movable, ResetPoint, Resolution},
    schedule::{self, ScheduleChange},
    time::Timestamp,
};

/// Refuses a malformed operation with the field at fault.
pub(crate) fn operation(
    operation: &RunOperation,
    limits: &Limits,
    now: Timestamp,
) -> Result<(), CallError> {
    let check = FieldCheck { limits };
    check.not_a_schedule(operation)?;
    match operation {
        RunOperation::Start(start) => check.start(start, now),
        RunOperation::Signal(Signal { target, signal, extension }) => {
            check.target(target)?;
            check.extension(extension)?;
            check.signal(signal)
        }
        RunOperation::Update(Update { target, update, request, .. }) => {
            check.target(target)?;
            check.update(update, request)
        }
        RunOperation::AwaitUpdate(AwaitUpdate { target, update, .. }) => {
            check.target(target)?;
            check.name("update id", update.as_str())
        }
        RunOperation::Query(Query { target, query }) => {
            check.target(target)?;
            check.name("query name", &query.name)?;
            check.map("query header", &query.header)?;
            check.payloads("query input", &query.input)
        }
        RunOperation::RescheduleTimer(RescheduleTimer { target, what, key, identity, .. }) => {
            check.target(target)?;
            check.key(key.as_ref())?;
            check.label("identity", identity)?;
            match what {
                Movable::Timer(timer) => check.name("timer id", timer.as_str()),
                Movable::Wait(wait) => check.name("wait id", &wait.to_string()),
            }
        }
        RunOperation::Terminate(Terminate { target, details, reason, identity, key }) => {
            check.done_to(target, reason, identity, key.as_ref())?;
            check.payloads("details", details)
        }
        RunOperation::Cancel(Cancel { target, reason, identity, key })
        | RunOperation::Pause(Pause { target, reason, identity, key })
        | RunOperation::Unpause(Unpause { target, reason, identity, key }) => {
            check.done_to(target, reason, identity, key.as_ref())
        }
        RunOperation::Repair(Repair { target, identity }) => {
            check.target(target)?;
            check.label("identity", identity)
        }
        RunOperation::Describe(Describe { target })
        | RunOperation::AwaitClose(AwaitClose { target })
        | RunOperation::AwaitEvents(AwaitEvents { target, .. })
        | RunOperation::AwaitWaits(AwaitWaits { target, .. }) => check.target(target),
        RunOperation::ReportAttempt(ReportAttempt { attempt, report }) => {
            check.report(attempt, report)
        }
        RunOperation::Delete(delete) => check.delete(delete),
        RunOperation::Reset(reset) => check.reset(reset),
        RunOperation::CreateSchedule(create) => {
            check.schedule(&create.workflow, &create.identity, create.key.as_ref())?;
            check.label("note", &create.note)?;
            Ok(create.schedule.check(limits, now)?)
        }
        RunOperation::ChangeSchedule(asked) => {
            check.schedule(&asked.workflow, &asked.identity, asked.key.as_ref())?;
            check.schedule_change(&asked.change, now)
        }
        RunOperation::DeleteSchedule(DeleteSchedule { workflow, identity, key }) => {
            check.schedule(workflow, identity, key.as_ref())
        }
        RunOperation::DescribeSchedule(DescribeSchedule { workflow }) => {
            check.schedule(workflow, "", None)
        }
    }
}

/// Refuses a malformed report with the field at fault.
pub(crate) fn report(report: &Report, limits: &Limits) -> Result<(), CallError> {
    let check = FieldCheck { limits };
    match report {
        Report::Heartbeat(_, details) => check.payloads("heartbeat details", details),
        Report::ResolveActivity(_, resolution) => check.resolution(resolution),
        Report::FailTask { failure, blocked, .. } => {
            blocked.as_ref().map_or(Ok(()), |blocked| limits.check_blocked(blocked))?;
            check.failure(failure)
        }
        Report::AnswerQuery(_, Ok(result)) => check.payloads("query result", result),
        Report::AnswerQuery(_, Err(failure)) => check.failure(failure),
        // The run checks each command itself.
        Report::CompleteTask(_, completion) => check.extension(&completion.sdk_metadata),
        Report::PresentAttempt(..) | Report::DetachAttempt(_) => Ok(()),
    }
}

struct FieldCheck<'a> {
    limits: &'a Limits,
}

impl FieldCheck<'_> {
    fn delete(&self, Delete { target, identity }: &Delete) -> Result<(), CallError> {
        self.target(target)?;
        self.label("identity", identity)?;
        match target.run {
            Some(_) => Ok(()),
            None => {
                let problem =
                    "is missing: name the run, so that a repeat cannot delete another one";
                Err(InvalidField::new("run", problem).into())
            }
        }
    }

    fn reset(&self, reset: &Reset) -> Result<(), CallError> {
        let Reset { target, to, reason, identity, key, reapply: _ } = reset;
        self.done_to(target, reason, identity, key.as_ref())?;
        match to {
            ResetPoint::Build(build) => self.name("build", build.as_str()),
            ResetPoint::Event(0) => {
                Err(InvalidField::new("event", "is 0; events are numbered from 1").into())
            }
            ResetPoint::Event(_)
            | ResetPoint::FirstTask
            | ResetPoint::LastTask
            | ResetPoint::Failure => Ok(()),
        }
    }

    /// Schedules are changed only by their own operations; everything can be read.
    fn not_a_schedule(&self, operation: &RunOperation) -> Result<(), CallError> {
        let changes = match operation.name() {
            OperationName::CreateSchedule
            | OperationName::ChangeSchedule
            | OperationName::DeleteSchedule
            | OperationName::Delete
            | OperationName::Repair => false,
            OperationName::Query => true,
            name => !name.repeatable(),
        };
        if changes && schedule::id_of(&operation.workflow().workflow).is_some() {
            return Err(InvalidField::new("workflow id", schedule::RESERVED).into());
        }
        Ok(())
    }

    fn schedule(
        &self,
        workflow: &WorkflowKey,
        identity: &str,
        key: Option<&Key>,
    ) -> Result<(), CallError> {
        self.name("schedule id", schedule::id_of(&workflow.workflow).unwrap_or_default())?;
        self.name("schedule id", workflow.workflow.as_str())?;
        self.name("namespace", workflow.namespace.as_str())?;
        self.key(key)?;
        self.label("identity", identity)
    }

    fn schedule_change(&self, change: &ScheduleChange, now: Timestamp) -> Result<(), CallError> {
        match change {
            ScheduleChange::Updated(schedule) => Ok(schedule.check(self.limits, now)?),
            ScheduleChange::Paused { note } | ScheduleChange::Unpaused { note } => {
                self.label("note", note)
            }
            ScheduleChange::Triggered { .. } => Ok(()),
            ScheduleChange::Backfilled { from, to, .. } if to < from => {
                let problem = format!("ends at {to}, before it begins at {from}");
                Err(InvalidField::new("backfill", problem).into())
            }
            ScheduleChange::Backfilled { to, .. } if *to > now => {
                let problem = format!("ends at {to}, which is in the future: it is {now}");
                Err(InvalidField::new("backfill", problem).into())
            }
            ScheduleChange::Backfilled { from, to, .. } => {
                let (span, limit) =
                    (to.saturating_since(*from), self.limits.schedules.backfill_span);
                if span <= limit {
                    return Ok(());
                }
                let problem = format!("spans {span:?}, the limit is {limit:?}; divide it");
                Err(InvalidField::new("backfill", problem).into())
            }
        }
    }

    fn resolution(&self, resolution: &Resolution) -> Result<(), CallError> {
        match resolution {
            Resolution::Completed(result) | Resolution::Cancelled(result) => {
                self.payloads("activity result", result)
            }
            Resolution::Failed(failure) => self.failure(failure),
        }
    }

    fn report(&self, name: &AttemptName, report: &AttemptReport) -> Result<(), CallError> {
        if let AttemptName::Activity(target, activity) = name {
            self.target(target)?;
            self.name("activity id", activity.as_str())?;
        }
        match report {
            AttemptReport::Heartbeat(details) => self.payloads("heartbeat details", details),
            AttemptReport::Resolved(resolution) => self.resolution(resolution),
        }
    }

    fn start(&self, start: &Start, now: Timestamp) -> Result<(), CallError> {
        self.name("workflow id", start.workflow.workflow.as_str())?;
        self.name("namespace", start.workflow.namespace.as_str())?;
        self.key(start.key.as_ref())?;
        self.label("identity", &start.identity)?;
        self.limits.check_spec(&start.spec)?;
        if start.begin.first_task_at(now).is_some_and(Timestamp::is_never) {
            return Err(InvalidField::new("begin", "is too far in the future").into());
        }
        match (&start.signal, &start.update) {
            (None, None) => Ok(()),
            (Some(signal), None) => self.signal(signal),
            (None, Some(asked)) => self.update(&asked.update, &asked.request),
            (Some(_), Some(_)) => {
                Err(InvalidField::new("update", "excludes a signal: send only one of them").into())
            }
        }
    }

    fn signal(&self, signal: &SignalReceived) -> Result<(), CallError> {
        self.name("signal name", &signal.name)?;
        self.key(signal.key.as_ref())?;
        self.label("identity", &signal.identity)?;
        self.payloads("signal input", &signal.input)?;
        self.map("signal header", &signal.header)
    }

    fn update(&self, update: &UpdateId, request: &UpdateRequest) -> Result<(), CallError> {
        self.name("update id", update.as_str())?;
        self.name("update name", &request.name)?;
        self.label("identity", &request.identity)?;
        self.map("update header", &request.header)?;
        self.payloads("update input", &request.input)
    }

    fn target(&self, target: &RunTarget) -> Result<(), CallError> {
        self.name("workflow id", target.workflow.workflow.as_str())?;
        self.name("namespace", target.workflow.namespace.as_str())
    }

    /// Fields shared by cancel, terminate, pause and unpause.
    fn done_to(
        &self,
        target: &RunTarget,
        reason: &str,
        identity: &str,
        key: Option<&Key>,
    ) -> Result<(), CallError> {
        self.target(target)?;
        self.key(key)?;
        self.label("identity", identity)?;
        self.label("reason", reason)
    }

    fn name(&self, field: &'static str, name: &str) -> Result<(), CallError> {
        self.limits.check_name(field, name).map_err(CallError::Invalid)
    }

    /// Text that may be empty.
    fn label(&self, field: &'static str, text: &str) -> Result<(), CallError> {
        if text.is_empty() { Ok(()) } else { self.name(field, text) }
    }

    fn key(&self, key: Option<&Key>) -> Result<(), CallError> {
        key.map_or(Ok(()), |key| self.name("key", key.as_str()))
    }

    fn extension(&self, extension: &Extension) -> Result<(), CallError> {
        self.limits.check_extension(extension).map_err(CallError::Invalid)
    }

    fn payloads(&self, field: &'static str, payloads: &Payloads) -> Result<(), CallError> {
        self.limits.check_size(field, payload::size(payloads)).map_err(CallError::Invalid)
    }

    fn map(&self, field: &'static str, map: &PayloadMap) -> Result<(), CallError> {
        self.limits.check_size(field, payload::map_size(map)).map_err(CallError::Invalid)
    }

    fn failure(&self, failure: &Failure) -> Result<(), CallError> {
        self.limits.check_failure(failure).map_err(CallError::Invalid)
    }
}
