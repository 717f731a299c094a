//! Tallies as messages.

use abide_core::{
    codec::Wire,
    limits::InvalidField,
    list::{RunStatus, WaitKind},
    tally::{Tallied, Tally, TallyGroup, WaitTally},
};

use crate::{
    field::{Inside, case, missing, parts, word},
    generated::{self as wire, tally_request::Tally as Wanted},
};

impl From<Tally> for wire::TallyRequest {
    fn from(tally: Tally) -> Self {
        Self {
            tally: Some(match tally {
                Tally::Waits(tally) => Wanted::Waits(tally.into()),
                Tally::Runs(filter) => Wanted::Runs(filter.into()),
            }),
        }
    }
}

impl TryFrom<wire::TallyRequest> for Tally {
    type Error = InvalidField;

    fn try_from(wire: wire::TallyRequest) -> Result<Self, InvalidField> {
        let inside = |field: &str| {
            let field = field.to_owned();
            move |error: InvalidField| error.inside(&field)
        };
        Ok(match wire.tally.ok_or_else(|| missing("tally"))? {
            Wanted::Waits(tally) => Self::Waits(tally.try_into().map_err(inside("waits"))?),
            Wanted::Runs(filter) => Self::Runs(filter.try_into().map_err(inside("runs"))?),
        })
    }
}

impl From<WaitTally> for wire::WaitTally {
    fn from(tally: WaitTally) -> Self {
        let kind = |kind: WaitKind| wire::WaitKind::from(kind).into();
        Self {
            namespace: tally.namespace.to_wire(),
            workflow_type: tally.workflow_type,
            kinds: tally.kinds.into_iter().map(kind).collect(),
            from: tally.from.to_wire(),
            interval: Some(tally.interval.to_wire()),
            intervals: tally.intervals,
        }
    }
}

impl TryFrom<wire::WaitTally> for WaitTally {
    type Error = InvalidField;

    fn try_from(wire: wire::WaitTally) -> Result<Self, InvalidField> {
        let kind = |number| case::<WaitKind, wire::WaitKind>("kinds", number);
        Ok(Self {
            namespace: word("namespace", wire.namespace)?,
            // The engine fills in the namespaces that it serves.
            known: Default::default(),
            workflow_type: wire.workflow_type,
            kinds: wire.kinds.into_iter().map(kind).collect::<Result<_, _>>()?,
            from: word("from", wire.from)?,
            interval: word("interval", wire.interval.ok_or_else(|| missing("interval"))?)?,
            intervals: wire.intervals,
        })
    }
}

impl From<Tallied> for wire::TallyResponse {
    fn from(Tallied { groups, more, whole }: Tallied) -> Self {
        let groups = groups.into_iter().map(Into::into).collect();
        Self { groups, more, whole_intervals: whole }
    }
}

impl TryFrom<wire::TallyResponse> for Tallied {
    type Error = InvalidField;

    fn try_from(wire: wire::TallyResponse) -> Result<Self, InvalidField> {
        let groups: Vec<GroupCount> = parts("groups", wire.groups)?;
        let groups = groups.into_iter().map(|it| (it.0, it.1)).collect();
        Ok(Self { groups, more: wire.more, whole: wire.whole_intervals })
    }
}

impl From<(TallyGroup, u64)> for wire::TallyGroup {
    fn from((group, count): (TallyGroup, u64)) -> Self {
        match group {
            TallyGroup::Waits { interval, kind } => {
                Self { count, interval, kind: wire::WaitKind::from(kind).into(), ..Self::default() }
            }
            TallyGroup::Runs { status, workflow_type } => {
                let status = wire::RunStatus::from(status).into();
                Self { count, status, workflow_type, ..Self::default() }
            }
            TallyGroup::Field(value) => {
                Self { count, field: Some(wire::FieldGroup { value }), ..Self::default() }
            }
        }
    }
}

/// A group and its count.
struct GroupCount(TallyGroup, u64);

impl TryFrom<wire::TallyGroup> for GroupCount {
    type Error = InvalidField;

    fn try_from(wire: wire::TallyGroup) -> Result<Self, InvalidField> {
        let wire::TallyGroup { count, interval, kind, status, workflow_type, field } = wire;
        if let Some(wire::FieldGroup { value }) = field {
            return Ok(Self(TallyGroup::Field(value), count));
        }
        let group = match status {
            0 => TallyGroup::Waits { interval, kind: case::<_, wire::WaitKind>("kind", kind)? },
            status => {
                let status: RunStatus = case::<_, wire::RunStatus>("status", status)?;
                TallyGroup::Runs { status, workflow_type }
            }
        };
        Ok(Self(group, count))
    }
}
