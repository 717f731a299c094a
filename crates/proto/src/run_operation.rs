//! Operations on one run, as messages.

use abide_core::{
    codec::Wire,
    event::{ReusePolicy, SignalReceived},
    limits::InvalidField,
    operation::{
        AwaitClose, AwaitUpdate, AwaitWaits, Begin, Cancel, ConflictPolicy, Describe, Pause, Query,
        QueryRequest, Repair, RescheduleTimer, Signal, Start, StartUpdate, Terminate, Unpause,
        Update, UpdateWait,
    },
    run::Movable,
};
use bytes::Bytes;

use crate::{
    field::{Inside, case, enumeration, part, word},
    generated::{self as wire, start_run_request::Begin as BeginWire},
    wait::wait_key,
};

enumeration!(ConflictPolicy, ConflictPolicy {
    Reject, UseExisting, TerminateExisting,
} else Reject);

enumeration!(UpdateWait, UpdateWait { Admitted, Accepted, Completed } else Completed);

/// Both conversions of an operation whose fields have the same names on the wire: its target,
/// values of the history format, and fields that are the same on both sides.
macro_rules! operation {
    ($name:ident as $message:ident { $($word:ident),* } { $($plain:ident),* }) => {
        impl From<$name> for wire::$message {
            fn from(operation: $name) -> Self {
                let $name { target, $($word,)* $($plain,)* } = operation;
                Self { target: Some(target.into()), $($word: $word.to_wire(),)* $($plain,)* }
            }
        }

        impl TryFrom<wire::$message> for $name {
            type Error = InvalidField;

            fn try_from(wire: wire::$message) -> Result<Self, InvalidField> {
                let wire::$message { target, $($word,)* $($plain,)* } = wire;
                Ok(Self {
                    target: part("target", target)?,
                    $($word: word(stringify!($word), $word)?,)*
                    $($plain,)*
                })
            }
        }
    };
}

operation!(Cancel as CancelRunRequest { key } { reason, identity });
operation!(Terminate as TerminateRunRequest { details, key } { reason, identity });
operation!(Pause as PauseRunRequest { key } { reason, identity });
operation!(Unpause as PauseRunRequest { key } { reason, identity });
operation!(Repair as RepairRunRequest {} { identity });
operation!(Describe as DescribeRunRequest {} {});
operation!(AwaitClose as AwaitCloseRequest {} {});
operation!(AwaitWaits as AwaitWaitsRequest {} { after });

impl From<Signal> for wire::SignalRunRequest {
    fn from(operation: Signal) -> Self {
        let Signal { target, signal, extension } = operation;
        Self { target: Some(target.into()), signal: Some(signal.into()), extension }
    }
}

impl TryFrom<wire::SignalRunRequest> for Signal {
    type Error = InvalidField;

    fn try_from(wire: wire::SignalRunRequest) -> Result<Self, InvalidField> {
        let wire::SignalRunRequest { target, signal, extension } = wire;
        Ok(Self { target: part("target", target)?, signal: part("signal", signal)?, extension })
    }
}

impl From<Query> for wire::QueryRunRequest {
    fn from(operation: Query) -> Self {
        let Query { target, query: QueryRequest { name, input, header } } = operation;
        let (input, header) = (input.to_wire(), header.to_wire());
        Self { target: Some(target.into()), name, input, header }
    }
}

impl TryFrom<wire::QueryRunRequest> for Query {
    type Error = InvalidField;

    fn try_from(wire: wire::QueryRunRequest) -> Result<Self, InvalidField> {
        let wire::QueryRunRequest { target, name, input, header } = wire;
        let (input, header) = (word("input", input)?, word("header", header)?);
        let query = QueryRequest { name, input, header };
        Ok(Self { target: part("target", target)?, query })
    }
}

impl From<Update> for wire::UpdateRunRequest {
    fn from(operation: Update) -> Self {
        let Update { target, update, request, until, wait_while_blocked } = operation;
        Self {
            target: Some(target.into()),
            update: update.to_wire(),
            request: request.to_wire(),
            until: wire::UpdateWait::from(until).into(),
            wait_while_blocked,
        }
    }
}

impl TryFrom<wire::UpdateRunRequest> for Update {
    type Error = InvalidField;

    fn try_from(wire: wire::UpdateRunRequest) -> Result<Self, InvalidField> {
        Ok(Self {
            target: part("target", wire.target)?,
            update: word("update", wire.update)?,
            request: word("request", wire.request)?,
            until: case::<_, wire::UpdateWait>("until", wire.until)?,
            wait_while_blocked: wire.wait_while_blocked,
        })
    }
}

impl From<AwaitUpdate> for wire::AwaitUpdateRequest {
    fn from(operation: AwaitUpdate) -> Self {
        let AwaitUpdate { target, update, until, wait_while_blocked } = operation;
        Self {
            target: Some(target.into()),
            update: update.to_wire(),
            until: wire::UpdateWait::from(until).into(),
            wait_while_blocked,
        }
    }
}

impl TryFrom<wire::AwaitUpdateRequest> for AwaitUpdate {
    type Error = InvalidField;

    fn try_from(wire: wire::AwaitUpdateRequest) -> Result<Self, InvalidField> {
        Ok(Self {
            target: part("target", wire.target)?,
            update: word("update", wire.update)?,
            until: case::<_, wire::UpdateWait>("until", wire.until)?,
            wait_while_blocked: wire.wait_while_blocked,
        })
    }
}

impl From<RescheduleTimer> for wire::RescheduleTimerRequest {
    fn from(operation: RescheduleTimer) -> Self {
        let RescheduleTimer { target, what, fire_at, after, identity, key } = operation;
        let (timer, wait) = movable_to_wire(what);
        let (fire_at, after, key) = (fire_at.to_wire(), after.to_wire(), key.to_wire());
        Self { target: Some(target.into()), timer, wait, fire_at, after, identity, key }
    }
}

impl TryFrom<wire::RescheduleTimerRequest> for RescheduleTimer {
    type Error = InvalidField;

    fn try_from(wire: wire::RescheduleTimerRequest) -> Result<Self, InvalidField> {
        Ok(Self {
            target: part("target", wire.target)?,
            what: movable_from_wire(wire.timer, wire.wait)?,
            fire_at: word("fire_at", wire.fire_at)?,
            after: word("after", wire.after)?,
            identity: wire.identity,
            key: word("key", wire.key)?,
        })
    }
}

/// The name of the timer, which is empty if the key of a wait is given instead.
fn movable_to_wire(what: Movable) -> (String, Option<Bytes>) {
    match what {
        Movable::Timer(timer) => (timer.to_wire(), None),
        Movable::Wait(wait) => (String::new(), Some(wait.to_bytes())),
    }
}

/// Reads what to move: a timer or a wait, never both.
fn movable_from_wire(timer: String, wait: Option<Bytes>) -> Result<Movable, InvalidField> {
    match wait {
        Some(_) if !timer.is_empty() => {
            Err(InvalidField::new("wait", "excludes a timer: set only one of them"))
        }
        Some(wait) => Ok(Movable::Wait(wait_key(&wait)?)),
        None => Ok(Movable::Timer(word("timer", timer)?)),
    }
}

impl From<Start> for wire::StartRunRequest {
    fn from(start: Start) -> Self {
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

impl TryFrom<wire::StartRunRequest> for Start {
    type Error = InvalidField;

    fn try_from(wire: wire::StartRunRequest) -> Result<Self, InvalidField> {
        if wire.run.is_some() {
            let problem = "must be absent: the engine generates run ids; set a key to make retries idempotent";
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

/// The engine sets when a signal was received, and only runs have a source, so neither travels.
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
