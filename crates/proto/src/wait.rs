//! Waits: their keys, and waits as lists show them.

use std::sync::Arc;

use abide_core::{
    codec::Wire,
    limits::InvalidField,
    list::{WaitEnd, WaitKind},
    operation::RunWaits,
    run::{ShownWait, WaitKey},
};

use crate::{
    field::{case, enumeration, parts, word},
    generated as wire,
};

enumeration!(
    WaitKind,
    WaitKind { Timer, Signal, Condition, ActivityRetry, ChildRetry, Approval, Schedule }
);

enumeration!(WaitEnd, WaitEnd { Time, Signal, Condition, Decision, Deadline });

/// Reads the key of a wait within its run.
///
/// # Errors
/// The bytes are not a key that a list has returned.
pub fn wait_key(bytes: &[u8]) -> Result<WaitKey, InvalidField> {
    WaitKey::from_bytes(bytes).ok_or_else(|| {
        InvalidField::new("wait", "is not the key of a wait, as ListWaits returns it")
    })
}

impl From<ShownWait> for wire::ShownWait {
    fn from(wait: ShownWait) -> Self {
        let ends = wait.ended_by().into_iter().map(|end| wire::WaitEnd::from(end).into());
        Self {
            ended_by: ends.collect(),
            wait: wait.key.to_bytes(),
            kind: wire::WaitKind::from(wait.kind).into(),
            name: wait.name,
            origin: wait.origin.to_wire(),
            timer: wait.timer.to_wire(),
            since: wait.since.to_wire(),
            until: wait.until.to_wire(),
            guards: wait.guards.to_wire(),
            moves: wait.moves,
            moved_by: wait.moved_by.to_wire(),
            details: wait.details.to_wire(),
        }
    }
}

/// What would end the wait follows from its kind and its end, so it is not read.
impl TryFrom<wire::ShownWait> for ShownWait {
    type Error = InvalidField;

    fn try_from(wire: wire::ShownWait) -> Result<Self, InvalidField> {
        Ok(Self {
            key: wait_key(&wire.wait)?,
            kind: case::<_, wire::WaitKind>("kind", wire.kind)?,
            name: wire.name,
            origin: word("origin", wire.origin)?,
            timer: word("timer", wire.timer)?,
            since: word("since", wire.since)?,
            until: word("until", wire.until)?,
            guards: word("guards", wire.guards)?,
            moves: wire.moves,
            moved_by: word("moved_by", wire.moved_by)?,
            details: word("details", wire.details)?,
        })
    }
}

impl From<RunWaits> for wire::RunWaits {
    fn from(waits: RunWaits) -> Self {
        Self {
            run: waits.run.to_wire(),
            log_row: waits.log_row,
            waits: Arc::unwrap_or_clone(waits.waits).into_iter().map(Into::into).collect(),
            closed: waits.closed,
        }
    }
}

impl TryFrom<wire::RunWaits> for RunWaits {
    type Error = InvalidField;

    fn try_from(wire: wire::RunWaits) -> Result<Self, InvalidField> {
        Ok(Self {
            run: word("run", wire.run)?,
            log_row: wire.log_row,
            waits: Arc::new(parts("waits", wire.waits)?),
            closed: wire.closed,
        })
    }
}
