//! Requests are checked before anything is read or written: names, sizes, combinations.

use abide_core::{
    cron,
    event::{RunSpec, SignalReceived},
    failure::Failure,
    limits::Limits,
    payload::{self, PayloadMap, Payloads},
    run::Resolution,
};

use crate::message::{Call, CallError, RunTarget, StartCall};

/// Refuses a malformed request with the field at fault.
pub(crate) fn check(call: &Call, limits: &Limits) -> Result<(), CallError> {
    let check = Check { limits };
    match call {
        Call::Start(start) => check.start(start),
        Call::Signal(target, signal, _) => {
            check.target(target)?;
            check.signal(signal)
        }
        Call::Update { target, update, request, .. } => {
            check.target(target)?;
            check.name("update id", update.as_str())?;
            check.name("update name", &request.name)?;
            check.payloads("update input", &request.input)
        }
        Call::Query { target, query } => {
            check.target(target)?;
            check.name("query name", &query.name)?;
            check.payloads("query input", &query.input)
        }
        Call::RescheduleTimer { target, timer, .. } => {
            check.target(target)?;
            check.name("timer id", timer.as_str())
        }
        Call::Terminate { target, details, .. } => {
            check.target(target)?;
            check.payloads("details", details)
        }
        Call::RequestCancel { target, .. }
        | Call::Pause(target, _)
        | Call::Unpause(target, _)
        | Call::Repair { target, .. }
        | Call::Describe(target)
        | Call::AwaitClose(target) => check.target(target),
        Call::Heartbeat(_, details) => check.payloads("heartbeat details", details),
        Call::ResolveActivity(_, Resolution::Completed(result) | Resolution::Cancelled(result)) => {
            check.payloads("activity result", result)
        }
        Call::ResolveActivity(_, Resolution::Failed(failure)) | Call::FailTask { failure, .. } => {
            check.failure(failure)
        }
        Call::AnswerQuery(_, Ok(result)) => check.payloads("query result", result),
        Call::AnswerQuery(_, Err(failure)) => check.failure(failure),
        // Commands are checked one by one by the run.
        Call::CompleteTask(..) | Call::PresentAttempt(..) => Ok(()),
    }
}

struct Check<'a> {
    limits: &'a Limits,
}

impl Check<'_> {
    fn start(&self, start: &StartCall) -> Result<(), CallError> {
        self.name("workflow id", start.workflow.workflow.as_str())?;
        self.name("namespace", start.workflow.namespace.as_str())?;
        self.spec(&start.spec)?;
        start.signal.as_ref().map_or(Ok(()), |signal| self.signal(signal))
    }

    fn spec(&self, spec: &RunSpec) -> Result<(), CallError> {
        self.name("workflow type", &spec.workflow_type)?;
        self.name("queue", &spec.queue)?;
        self.payloads("input", &spec.input)?;
        self.map("header", &spec.header)?;
        self.map("memo", &spec.memo)?;
        self.map("search attributes", &spec.search_attributes)?;
        match &spec.cron {
            Some(cron) if !cron::valid(cron) => {
                Err(CallError::Invalid(format!("cron: {cron:?} is not a cron expression")))
            }
            _ => Ok(()),
        }
    }

    fn signal(&self, signal: &SignalReceived) -> Result<(), CallError> {
        self.name("signal name", &signal.name)?;
        self.payloads("signal input", &signal.input)?;
        self.map("signal header", &signal.header)
    }

    fn target(&self, target: &RunTarget) -> Result<(), CallError> {
        self.name("workflow id", target.workflow.workflow.as_str())?;
        self.name("namespace", target.workflow.namespace.as_str())
    }

    fn name(&self, field: &'static str, name: &str) -> Result<(), CallError> {
        self.limits.check_name(field, name).map_err(CallError::Invalid)
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
