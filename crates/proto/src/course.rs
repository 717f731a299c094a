//! Operations that change the course of a run, as messages.

use abide_core::{
    codec::{Wire, generated::Nothing},
    limits::InvalidField,
    operation::{Delete, Reset},
    run::{Reapply, ResetPoint},
};

use crate::{
    field::{missing, part, word},
    generated::{self as wire, reset_run_request::To},
};

impl From<Delete> for wire::DeleteRunRequest {
    fn from(operation: Delete) -> Self {
        let Delete { target, identity } = operation;
        Self { target: Some(target.into()), identity }
    }
}

impl TryFrom<wire::DeleteRunRequest> for Delete {
    type Error = InvalidField;

    fn try_from(wire: wire::DeleteRunRequest) -> Result<Self, InvalidField> {
        let wire::DeleteRunRequest { target, identity } = wire;
        Ok(Self { target: part("target", target)?, identity })
    }
}

impl From<Reset> for wire::ResetRunRequest {
    fn from(operation: Reset) -> Self {
        let Reset { target, to, reapply, reason, identity, key } = operation;
        Self {
            target: Some(target.into()),
            to: Some(match to {
                ResetPoint::FirstTask => To::FirstTask(Nothing {}),
                ResetPoint::LastTask => To::LastTask(Nothing {}),
                ResetPoint::Event(number) => To::Event(number),
                ResetPoint::Build(build) => To::Build(build.to_wire()),
                ResetPoint::Failure => To::Failure(Nothing {}),
            }),
            drop_signals: !reapply.signals,
            drop_updates: !reapply.updates,
            reason,
            identity,
            key: key.to_wire(),
        }
    }
}

impl TryFrom<wire::ResetRunRequest> for Reset {
    type Error = InvalidField;

    fn try_from(wire: wire::ResetRunRequest) -> Result<Self, InvalidField> {
        Ok(Self {
            target: part("target", wire.target)?,
            to: match wire.to.ok_or_else(|| missing("to"))? {
                To::FirstTask(Nothing {}) => ResetPoint::FirstTask,
                To::LastTask(Nothing {}) => ResetPoint::LastTask,
                To::Event(number) => ResetPoint::Event(number),
                To::Build(build) => ResetPoint::Build(word("build", build)?),
                To::Failure(Nothing {}) => ResetPoint::Failure,
            },
            reapply: Reapply { signals: !wire.drop_signals, updates: !wire.drop_updates },
            reason: wire.reason,
            identity: wire.identity,
            key: word("key", wire.key)?,
        })
    }
}
