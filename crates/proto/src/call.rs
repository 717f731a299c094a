//! Calls of the core as messages: those of clients here, those of workers in `worker`.

use abide_core::{
    call::{Begin, Call, ConflictPolicy, Query, RunTarget, StartCall, StartUpdate, UpdateWait},
    codec::Wire,
    event::{ReusePolicy, RunPaused, RunUnpaused, SignalReceived},
    limits::InvalidField,
    run::Movable,
};
use bytes::Bytes;

use crate::{
    attempt,
    field::{Inside, case, enumeration, part, word},
    generated::{
        self as wire, numbered_call::Call as Asked, start_run_request::Begin as BeginWire,
    },
    wait::wait_key,
};

enumeration!(ConflictPolicy, ConflictPolicy {
    Reject, UseExisting, TerminateExisting,
} else Reject);

enumeration!(UpdateWait, UpdateWait { Admitted, Accepted, Completed } else Completed);

/// The form of a client's call on the wire; none if the call is a worker's or only a part of an
/// operation.
pub(crate) fn to_wire(call: Call) -> Option<Asked> {
    Some(match call {
        Call::Start(start) => Asked::Start((*start).into()),
        Call::Signal(target, signal, extension) => Asked::Signal(wire::SignalRunRequest {
            target: Some(target.into()),
            signal: Some(signal.into()),
            extension,
        }),
        Call::RequestCancel { target, reason, identity, key } => {
            let (target, key) = (Some(target.into()), key.to_wire());
            Asked::Cancel(wire::CancelRunRequest { target, reason, identity, key })
        }
        Call::Terminate { target, reason, identity, details, key } => {
            let (target, details, key) = (Some(target.into()), details.to_wire(), key.to_wire());
            Asked::Terminate(wire::TerminateRunRequest { target, reason, identity, details, key })
        }
        Call::Pause(target, RunPaused { reason, identity, key }) => {
            let (target, key) = (Some(target.into()), key.to_wire());
            Asked::Pause(wire::PauseRunRequest { target, reason, identity, key })
        }
        Call::Unpause(target, RunUnpaused { reason, identity, key }) => {
            let (target, key) = (Some(target.into()), key.to_wire());
            Asked::Unpause(wire::PauseRunRequest { target, reason, identity, key })
        }
        Call::Update { target, update, request, until, wait_while_blocked } => {
            let update = StartUpdate { update, request, until, wait_while_blocked };
            Asked::Update(update_to_wire(target, update))
        }
        Call::AwaitUpdate { target, update, until, wait_while_blocked } => {
            let (target, until) = (Some(target.into()), wire::UpdateWait::from(until).into());
            let update = update.to_wire();
            let request = wire::AwaitUpdateRequest { target, update, until, wait_while_blocked };
            Asked::AwaitUpdate(request)
        }
        Call::Query { target, query: Query { name, input } } => {
            let (target, input) = (Some(target.into()), input.to_wire());
            Asked::Query(wire::QueryRunRequest { target, name, input })
        }
        Call::RescheduleTimer { target, what, fire_at, identity, key } => {
            let (timer, wait) = movable_to_wire(what);
            let (target, fire_at, key) = (Some(target.into()), fire_at.to_wire(), key.to_wire());
            let request =
                wire::RescheduleTimerRequest { target, timer, wait, fire_at, identity, key };
            Asked::RescheduleTimer(request)
        }
        Call::Repair { target, identity } => {
            Asked::Repair(wire::RepairRunRequest { target: Some(target.into()), identity })
        }
        Call::Describe(target) => {
            Asked::Describe(wire::DescribeRunRequest { target: Some(target.into()) })
        }
        Call::AwaitClose(target) => {
            Asked::AwaitClose(wire::AwaitCloseRequest { target: Some(target.into()) })
        }
        Call::AwaitWaits(target, after) => {
            Asked::AwaitWaits(wire::AwaitWaitsRequest { target: Some(target.into()), after })
        }
        Call::ReportAttempt(name, report) => {
            Asked::ReportAttempt(attempt::request_to_wire(name, report))
        }
        Call::AwaitEvents(..)
        | Call::DetachAttempt(_)
        | Call::CompleteTask(..)
        | Call::FailTask { .. }
        | Call::AnswerQuery(..)
        | Call::ResolveActivity(..)
        | Call::Heartbeat(..)
        | Call::PresentAttempt(..) => return None,
    })
}

fn update_to_wire(target: RunTarget, update: StartUpdate) -> wire::UpdateRunRequest {
    wire::UpdateRunRequest {
        target: Some(target.into()),
        update: update.update.to_wire(),
        request: update.request.to_wire(),
        until: wire::UpdateWait::from(update.until).into(),
        wait_while_blocked: update.wait_while_blocked,
    }
}

/// The timer, which is empty if the name of a wait stands in its place.
fn movable_to_wire(what: Movable) -> (String, Option<Bytes>) {
    match what {
        Movable::Timer(timer) => (timer.to_wire(), None),
        Movable::Wait(wait) => (String::new(), Some(wait.to_bytes())),
    }
}

/// The call that a client's message asks for; lists, histories and descriptions are no calls.
pub(crate) fn from_wire(asked: Asked) -> Result<Call, InvalidField> {
    Ok(match asked {
        Asked::Start(start) => Call::Start(Box::new(start.try_into()?)),
        Asked::Signal(request) => Call::Signal(
            part("target", request.target)?,
            part("signal", request.signal)?,
            request.extension,
        ),
        Asked::Query(request) => Call::Query {
            target: part("target", request.target)?,
            query: Query { name: request.name, input: word("input", request.input)? },
        },
        Asked::Update(request) => Call::Update {
            target: part("target", request.target)?,
            update: word("update", request.update)?,
            request: word("request", request.request)?,
            until: case::<_, wire::UpdateWait>("until", request.until)?,
            wait_while_blocked: request.wait_while_blocked,
        },
        Asked::AwaitUpdate(request) => Call::AwaitUpdate {
            target: part("target", request.target)?,
            update: word("update", request.update)?,
            until: case::<_, wire::UpdateWait>("until", request.until)?,
            wait_while_blocked: request.wait_while_blocked,
        },
        Asked::Cancel(request) => Call::RequestCancel {
            target: part("target", request.target)?,
            reason: request.reason,
            identity: request.identity,
            key: word("key", request.key)?,
        },
        Asked::Terminate(request) => Call::Terminate {
            target: part("target", request.target)?,
            reason: request.reason,
            identity: request.identity,
            details: word("details", request.details)?,
            key: word("key", request.key)?,
        },
        Asked::Pause(wire::PauseRunRequest { target, reason, identity, key }) => {
            let key = word("key", key)?;
            Call::Pause(part("target", target)?, RunPaused { reason, identity, key })
        }
        Asked::Unpause(wire::PauseRunRequest { target, reason, identity, key }) => {
            let key = word("key", key)?;
            Call::Unpause(part("target", target)?, RunUnpaused { reason, identity, key })
        }
        Asked::Describe(request) => Call::Describe(part("target", request.target)?),
        Asked::AwaitClose(request) => Call::AwaitClose(part("target", request.target)?),
        Asked::AwaitWaits(request) => {
            Call::AwaitWaits(part("target", request.target)?, request.after)
        }
        Asked::RescheduleTimer(request) => Call::RescheduleTimer {
            target: part("target", request.target)?,
            what: movable_from_wire(request.timer, request.wait)?,
            fire_at: word("fire_at", request.fire_at)?,
            identity: request.identity,
            key: word("key", request.key)?,
        },
        Asked::Repair(request) => {
            Call::Repair { target: part("target", request.target)?, identity: request.identity }
        }
        Asked::ReportAttempt(request) => attempt::request_from_wire(request)?,
        Asked::History(_)
        | Asked::ListRuns(_)
        | Asked::CountRuns(_)
        | Asked::ListWaits(_)
        | Asked::ListNodes(_) => {
            return Err(InvalidField::new("call", "is a list, not a call"));
        }
    })
}

/// What is moved: a timer or a wait, never both.
fn movable_from_wire(timer: String, wait: Option<Bytes>) -> Result<Movable, InvalidField> {
    match wait {
        Some(_) if !timer.is_empty() => {
            Err(InvalidField::new("wait", "stands beside a timer: name one"))
        }
        Some(wait) => Ok(Movable::Wait(wait_key(&wait)?)),
        None => Ok(Movable::Timer(word("timer", timer)?)),
    }
}

impl From<StartCall> for wire::StartRunRequest {
    fn from(start: StartCall) -> Self {
        Self {
            workflow: start.workflow.to_wire(),
            run: None,
            spec: start.spec.to_wire(),
            identity: start.identity,
            key: start.key.to_wire(),
            conflict: wire::ConflictPolicy::from(start.conflict).into(),
            reuse: start.reuse.to_wire(),
            begin: begin_to_wire(start.begin),
            signal: start.signal.map(Into::into),
            update: start.update.map(|update| (*update).into()),
        }
    }
}

impl TryFrom<wire::StartRunRequest> for StartCall {
    type Error = InvalidField;

    fn try_from(wire: wire::StartRunRequest) -> Result<Self, InvalidField> {
        if wire.run.is_some() {
            let problem = "must be absent: the engine draws the ids of runs, and a key makes a repeat the same start";
            return Err(InvalidField::new("run", problem));
        }
        let signal = wire.signal.map(SignalReceived::try_from).transpose();
        let update = wire.update.map(StartUpdate::try_from).transpose();
        Ok(Self {
            workflow: word("workflow", wire.workflow)?,
            spec: word("spec", wire.spec)?,
            identity: wire.identity,
            key: word("key", wire.key)?,
            conflict: case::<_, wire::ConflictPolicy>("conflict", wire.conflict)?,
            reuse: match wire.reuse {
                0 => ReusePolicy::default(),
                number => word("reuse", number)?,
            },
            begin: begin_from_wire(wire.begin)?,
            signal: signal.map_err(|error| error.inside("signal"))?,
            update: update.map_err(|error| error.inside("update"))?.map(Box::new),
        })
    }
}

impl From<StartUpdate> for wire::StartUpdate {
    fn from(asked: StartUpdate) -> Self {
        Self {
            update: asked.update.to_wire(),
            request: asked.request.to_wire(),
            until: wire::UpdateWait::from(asked.until).into(),
            wait_while_blocked: asked.wait_while_blocked,
        }
    }
}

impl TryFrom<wire::StartUpdate> for StartUpdate {
    type Error = InvalidField;

    fn try_from(wire: wire::StartUpdate) -> Result<Self, InvalidField> {
        Ok(Self {
            update: word("update", wire.update)?,
            request: word("request", wire.request)?,
            until: case::<_, wire::UpdateWait>("until", wire.until)?,
            wait_while_blocked: wire.wait_while_blocked,
        })
    }
}

fn begin_to_wire(begin: Begin) -> Option<BeginWire> {
    match begin {
        Begin::AtOnce => None,
        Begin::After(delay) => Some(BeginWire::BeginAfter(delay.to_wire())),
        Begin::At(time) => Some(BeginWire::BeginAt(time.to_wire())),
    }
}

fn begin_from_wire(wire: Option<BeginWire>) -> Result<Begin, InvalidField> {
    Ok(match wire {
        None => Begin::AtOnce,
        Some(BeginWire::BeginAfter(delay)) => Begin::After(word("begin_after", delay)?),
        Some(BeginWire::BeginAt(time)) => Begin::At(word("begin_at", time)?),
    })
}

/// The engine says when a signal was received, and only runs have a source, so neither travels.
impl From<SignalReceived> for wire::Signal {
    fn from(signal: SignalReceived) -> Self {
        Self {
            name: signal.name,
            input: signal.input.to_wire(),
            header: signal.header.to_wire(),
            identity: signal.identity,
            key: signal.key.to_wire(),
        }
    }
}

impl TryFrom<wire::Signal> for SignalReceived {
    type Error = InvalidField;

    fn try_from(wire: wire::Signal) -> Result<Self, InvalidField> {
        Ok(Self {
            name: wire.name,
            input: word("input", wire.input)?,
            header: word("header", wire.header)?,
            identity: wire.identity,
            key: word("key", wire.key)?,
            ..Self::default()
        })
    }
}
