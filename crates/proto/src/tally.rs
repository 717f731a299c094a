//! Tallies as messages.

use abide_core::{
    codec::Wire,
    limits::InvalidField,
    list::{RunStatus, WaitKind},
    tally::{RunGroup, RunTally, TallyRuns, TallyWaits, WaitGroup, WaitTally},
};

use crate::{
    field::{Inside, case, missing, word},
    generated as wire,
    list::filter,
};

impl From<TallyRuns> for wire::TallyRunsRequest {
    fn from(TallyRuns { filter }: TallyRuns) -> Self {
        Self { filter: Some(filter.into()) }
    }
}

impl TryFrom<wire::TallyRunsRequest> for TallyRuns {
    type Error = InvalidField;

    fn try_from(wire: wire::TallyRunsRequest) -> Result<Self, InvalidField> {
        Ok(Self { filter: filter(wire.filter)? })
    }
}

impl From<TallyWaits> for wire::TallyWaitsRequest {
    fn from(asked: TallyWaits) -> Self {
        let kind = |kind: WaitKind| wire::WaitKind::from(kind).into();
        Self {
            namespace: asked.namespace.to_wire(),
            workflow_type: asked.workflow_type,
            kinds: asked.kinds.into_iter().map(kind).collect(),
            from: asked.from.to_wire(),
            interval: Some(asked.interval.to_wire()),
            intervals: asked.intervals,
        }
    }
}

impl TryFrom<wire::TallyWaitsRequest> for TallyWaits {
    type Error = InvalidField;

    fn try_from(wire: wire::TallyWaitsRequest) -> Result<Self, InvalidField> {
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

impl From<RunTally> for wire::TallyRunsResponse {
    fn from(RunTally { groups, more }: RunTally) -> Self {
        let group = |(group, count): (RunGroup, u64)| match group {
            RunGroup::Type { status, workflow_type } => {
                let status = wire::RunStatus::from(status).into();
                wire::RunGroup { count, status, workflow_type, field: None }
            }
            RunGroup::Value(value) => {
                let field = Some(wire::FieldGroup { value });
                wire::RunGroup { count, field, ..wire::RunGroup::default() }
            }
        };
        Self { groups: groups.into_iter().map(group).collect(), more }
    }
}

impl TryFrom<wire::TallyRunsResponse> for RunTally {
    type Error = InvalidField;

    fn try_from(wire: wire::TallyRunsResponse) -> Result<Self, InvalidField> {
        let group = |wire::RunGroup { count, status, workflow_type, field }| {
            if let Some(wire::FieldGroup { value }) = field {
                return Ok((RunGroup::Value(value), count));
            }
            let status: RunStatus = case::<_, wire::RunStatus>("status", status)?;
            Ok((RunGroup::Type { status, workflow_type }, count))
        };
        let groups = wire.groups.into_iter().map(group).collect::<Result<_, _>>();
        Ok(Self { groups: groups.map_err(in_groups)?, more: wire.more })
    }
}

impl From<WaitTally> for wire::TallyWaitsResponse {
    fn from(WaitTally { groups, more, whole }: WaitTally) -> Self {
        let group = |(WaitGroup { interval, kind }, count)| wire::WaitGroup {
            count,
            interval,
            kind: wire::WaitKind::from(kind).into(),
        };
        let groups = groups.into_iter().map(group).collect();
        Self { groups, more, whole_intervals: whole }
    }
}

impl TryFrom<wire::TallyWaitsResponse> for WaitTally {
    type Error = InvalidField;

    fn try_from(wire: wire::TallyWaitsResponse) -> Result<Self, InvalidField> {
        let group = |wire::WaitGroup { count, interval, kind }| {
            let kind = case::<_, wire::WaitKind>("kind", kind)?;
            Ok((WaitGroup { interval, kind }, count))
        };
        let groups = wire.groups.into_iter().map(group).collect::<Result<_, _>>();
        let groups = groups.map_err(in_groups)?;
        Ok(Self { groups, more: wire.more, whole: wire.whole_intervals })
    }
}

fn in_groups(error: InvalidField) -> InvalidField {
    error.inside("groups")
}
