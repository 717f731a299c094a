//! Requests are checked before anything is read or written: names, sizes, combinations.

use abide_core::{
    attempt::{AttemptName, AttemptReport},
    call::{Call, CallError, RunTarget, StartCall},
    event::{RunPaused, RunUnpaused, SignalReceived, UpdateRequest},
    failure::Failure,
    ids::{Key, UpdateId},
    limits::{InvalidField, Limits},
    payload::{self, Extension, PayloadMap, Payloads},
    run::{Movable, Resolution},
    time::Timestamp,
};

/// Refuses a malformed request with the field at fault.
pub(crate) fn check(call: &Call, limits: &Limits, now: Timestamp) -> Result<(), CallError> {
    let check = Check { limits };
    match call {
        Call::Start(start) => check.start(start, now),
        Call::Signal(target, signal, extension) => {
            check.target(target)?;
            check.extension(extension)?;
            check.signal(signal)
        }
        Call::Update { target, update, request, .. } => {
            check.target(target)?;
            check.update(update, request)
        }
        Call::AwaitUpdate { target, update, .. } => {
            check.target(target)?;
            check.name("update id", update.as_str())
        }
        Call::Query { target, query } => {
            check.target(target)?;
            check.name("query name", &query.name)?;
            check.payloads("query input", &query.input)
        }
        Call::RescheduleTimer { target, what, key, identity, .. } => {
            check.target(target)?;
            check.key(key.as_ref())?;
            check.label("identity", identity)?;
            match what {
                Movable::Timer(timer) => check.name("timer id", timer.as_str()),
                Movable::Wait(wait) => check.name("wait id", &wait.to_string()),
            }
        }
        Call::Terminate { target, details, reason, identity, key } => {
            check.target(target)?;
            check.key(key.as_ref())?;
            check.label("identity", identity)?;
            check.label("reason", reason)?;
            check.payloads("details", details)
        }
        Call::RequestCancel { target, reason, identity, key } => {
            check.target(target)?;
            check.key(key.as_ref())?;
            check.label("identity", identity)?;
            check.label("reason", reason)
        }
        Call::Pause(target, RunPaused { reason, identity, key })
        | Call::Unpause(target, RunUnpaused { reason, identity, key }) => {
            check.target(target)?;
            check.key(key.as_ref())?;
            check.label("identity", identity)?;
            check.label("reason", reason)
        }
        Call::Repair { target, identity } => {
            check.target(target)?;
            check.label("identity", identity)
        }
        Call::Describe(target)
        | Call::AwaitClose(target)
        | Call::AwaitEvents(target, _)
        | Call::AwaitWaits(target, _) => check.target(target),
        Call::Heartbeat(_, details) => check.payloads("heartbeat details", details),
        Call::ResolveActivity(_, resolution) => check.resolution(resolution),
        Call::FailTask { failure, blocked, .. } => {
            blocked.as_ref().map_or(Ok(()), |blocked| limits.check_blocked(blocked))?;
            check.failure(failure)
        }
        Call::AnswerQuery(_, Ok(result)) => check.payloads("query result", result),
        Call::AnswerQuery(_, Err(failure)) => check.failure(failure),
        // Commands are checked one by one by the run.
        Call::CompleteTask(_, completion) => check.extension(&completion.sdk_metadata),
        Call::ReportAttempt(name, report) => check.report(name, report),
        Call::PresentAttempt(..) | Call::DetachAttempt(_) => Ok(()),
    }
}

struct Check<'a> {
    limits: &'a Limits,
}

impl Check<'_> {
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

    fn start(&self, start: &StartCall, now: Timestamp) -> Result<(), CallError> {
        self.name("workflow id", start.workflow.workflow.as_str())?;
        self.name("namespace", start.workflow.namespace.as_str())?;
        self.key(start.key.as_ref())?;
        self.label("identity", &start.identity)?;
        self.limits.check_spec(&start.spec)?;
        if start.begin.first_task_at(now).is_some_and(Timestamp::never) {
            return Err(InvalidField::new("begin", "lies too far ahead").into());
        }
        match (&start.signal, &start.update) {
            (None, None) => Ok(()),
            (Some(signal), None) => self.signal(signal),
            (None, Some(asked)) => self.update(&asked.update, &asked.request),
            (Some(_), Some(_)) => {
                Err(InvalidField::new("update", "stands beside a signal: send one of them").into())
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
