//! Requests are checked before anything is read or written: names, sizes, combinations.

use abide_core::{
    cron,
    event::{RunSpec, SignalReceived},
    limits::Limits,
    payload::{PayloadMap, Payloads},
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
        Call::CompleteTask(..)
        | Call::FailTask { .. }
        | Call::AnswerQuery(..)
        | Call::ResolveActivity(..)
        | Call::PresentAttempt(..) => Ok(()),
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
                Err(invalid("cron", format!("{cron:?} is not a cron expression")))
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
        let limit = self.limits.id_bytes;
        match name.len() {
            0 => Err(invalid(field, "it is empty".into())),
            length if length > limit => {
                Err(invalid(field, format!("it has {length} bytes, the limit is {limit}")))
            }
            _ => Ok(()),
        }
    }

    fn payloads(&self, field: &'static str, payloads: &Payloads) -> Result<(), CallError> {
        self.size(field, payloads.iter().map(|payload| payload.size()).sum())
    }

    fn map(&self, field: &'static str, map: &PayloadMap) -> Result<(), CallError> {
        self.size(field, map.iter().map(|(name, payload)| name.len() + payload.size()).sum())
    }

    fn size(&self, field: &'static str, size: usize) -> Result<(), CallError> {
        let limit = self.limits.payload_bytes;
        if size <= limit {
            return Ok(());
        }
        Err(invalid(field, format!("it has {size} bytes, the limit is {limit}")))
    }
}

fn invalid(field: &'static str, reason: String) -> CallError {
    CallError::Invalid { field, reason }
}
