//! Lists: rows, filters, and the opaque tokens that mark the end of a page.

use abide_core::{
    codec::{self, Wire},
    ids::{RunId, ShardId, WorkflowKey},
    limits::InvalidField,
    list::{RunFilter, RunParent, RunRow, RunStatus, WaitFilter, WaitPosition, WaitRow},
    operation::{CountRuns, ListRuns, ListWaits, RunRows, WaitRows},
    time::Timestamp,
};
use bytes::Bytes;
use prost::Message;

use crate::{
    field::{Inside, case, missing, parts, word},
    generated::{self as wire, run_place::Place},
};

impl From<RunRow> for wire::RunSummary {
    fn from(row: RunRow) -> Self {
        let workflow = WorkflowKey { namespace: row.namespace, workflow: row.workflow };
        Self {
            workflow: workflow.to_wire(),
            run: row.run.to_wire(),
            ordinal: row.ordinal,
            workflow_type: row.workflow_type,
            status: wire::RunStatus::from(row.status).into(),
            start_key: row.start_key,
            started_at: row.started_at.to_wire(),
            closed_at: row.closed_at.to_wire(),
            // A row whose details are damaged is still worth showing.
            details: codec::decode_run_details(row.details).ok().as_ref().map(Wire::to_wire),
            queue: row.queue,
            parent: row.parent.map(|parent| wire::RunParent {
                workflow: parent.workflow.to_wire(),
                run: parent.run.to_wire(),
            }),
        }
    }
}

impl TryFrom<wire::RunSummary> for RunRow {
    type Error = InvalidField;

    fn try_from(wire: wire::RunSummary) -> Result<Self, InvalidField> {
        let WorkflowKey { namespace, workflow } = word("workflow", wire.workflow)?;
        let details: codec::RunDetails = word("details", wire.details.unwrap_or_default())?;
        let parent = |wire: wire::RunParent| {
            let (workflow, run) = (word("workflow", wire.workflow)?, word("run", wire.run)?);
            Ok::<_, InvalidField>(RunParent { workflow, run })
        };
        let parent = wire.parent.map(parent).transpose().map_err(|error| error.inside("parent"))?;
        Ok(Self {
            run: word("run", wire.run)?,
            namespace,
            workflow,
            ordinal: wire.ordinal,
            workflow_type: wire.workflow_type,
            status: case::<_, wire::RunStatus>("status", wire.status)?,
            start_key: wire.start_key,
            started_at: word("started_at", wire.started_at)?,
            closed_at: word("closed_at", wire.closed_at)?,
            details: codec::encode_run_details(&details),
            queue: wire.queue,
            parent,
        })
    }
}

impl From<WaitRow> for wire::WaitSummary {
    fn from(row: WaitRow) -> Self {
        let workflow = WorkflowKey { namespace: row.namespace, workflow: row.workflow };
        Self {
            workflow: workflow.to_wire(),
            run: row.run.to_wire(),
            wait: row.wait,
            kind: wire::WaitKind::from(row.kind).into(),
            name: row.name,
            since: row.since.to_wire(),
            until: row.until.to_wire(),
            // A row whose details are damaged is still worth showing.
            details: codec::decode_wait_details(row.details).ok().flatten().to_wire(),
            workflow_type: row.workflow_type,
            timer: row.timer.to_wire(),
        }
    }
}

impl TryFrom<wire::WaitSummary> for WaitRow {
    type Error = InvalidField;

    fn try_from(wire: wire::WaitSummary) -> Result<Self, InvalidField> {
        let WorkflowKey { namespace, workflow } = word("workflow", wire.workflow)?;
        let details: Option<abide_core::event::WaitDetails> = word("details", wire.details)?;
        Ok(Self {
            run: word("run", wire.run)?,
            wait: wire.wait,
            namespace,
            workflow,
            workflow_type: wire.workflow_type,
            kind: case::<_, wire::WaitKind>("kind", wire.kind)?,
            name: wire.name,
            since: word("since", wire.since)?,
            until: word("until", wire.until)?,
            timer: word("timer", wire.timer)?,
            details: codec::encode_wait_details(details.as_ref()),
        })
    }
}

/// The token of a page of runs that ends at this position.
fn run_position(started_at: Timestamp, run: RunId) -> Bytes {
    wire::RunPosition { started_at: started_at.to_wire(), run: run.to_wire() }
        .encode_to_vec()
        .into()
}

/// The token of a page of waits that ends with this row.
fn wait_token(row: &WaitRow) -> Bytes {
    wait_position(&row.position())
}

pub(crate) fn wait_position(position: &WaitPosition) -> Bytes {
    wire::WaitPosition {
        until: position.until.to_wire(),
        run: position.run.to_wire(),
        shard: position.shard.number().into(),
        wait: position.wait.clone(),
    }
    .encode_to_vec()
    .into()
}

impl From<RunRows> for wire::ListRunsResponse {
    fn from(RunRows { rows, next }: RunRows) -> Self {
        let next_page_token = next.map(|(at, run)| run_position(at, run)).unwrap_or_default();
        Self { runs: rows.into_iter().map(Into::into).collect(), next_page_token }
    }
}

impl TryFrom<wire::ListRunsResponse> for RunRows {
    type Error = InvalidField;

    fn try_from(wire: wire::ListRunsResponse) -> Result<Self, InvalidField> {
        Ok(Self { rows: parts("runs", wire.runs)?, next: position(wire.next_page_token)? })
    }
}

impl From<WaitRows> for wire::ListWaitsResponse {
    fn from(WaitRows { rows, more }: WaitRows) -> Self {
        let last = rows.last().filter(|_| more);
        let next_page_token = last.map(wait_token).unwrap_or_default();
        Self { waits: rows.into_iter().map(Into::into).collect(), next_page_token }
    }
}

impl TryFrom<wire::ListWaitsResponse> for WaitRows {
    type Error = InvalidField;

    fn try_from(wire: wire::ListWaitsResponse) -> Result<Self, InvalidField> {
        let more = !wire.next_page_token.is_empty();
        Ok(Self { rows: parts("waits", wire.waits)?, more })
    }
}

impl From<CountRuns> for wire::CountRunsRequest {
    fn from(CountRuns { filter }: CountRuns) -> Self {
        Self { filter: Some(filter.into()) }
    }
}

impl TryFrom<wire::CountRunsRequest> for CountRuns {
    type Error = InvalidField;

    fn try_from(wire: wire::CountRunsRequest) -> Result<Self, InvalidField> {
        Ok(Self { filter: filter(wire.filter)? })
    }
}

impl From<ListRuns> for wire::ListRunsRequest {
    fn from(page: ListRuns) -> Self {
        let token = page.filter.after.map(|(at, run)| run_position(at, run));
        Self {
            filter: Some(page.filter.into()),
            page_size: size(page.limit),
            page_token: token.unwrap_or_default(),
        }
    }
}

impl TryFrom<wire::ListRunsRequest> for ListRuns {
    type Error = InvalidField;

    fn try_from(wire: wire::ListRunsRequest) -> Result<Self, InvalidField> {
        let mut filter = filter::<RunFilter, _>(wire.filter)?;
        filter.after = position(wire.page_token)?;
        Ok(Self { filter, limit: limit(wire.page_size) })
    }
}

/// The position that a token stands for, if it is one.
fn position(page_token: Bytes) -> Result<Option<(Timestamp, RunId)>, InvalidField> {
    if page_token.is_empty() {
        return Ok(None);
    }
    let position: wire::RunPosition = token(page_token)?;
    Ok(Some((word("page_token", position.started_at)?, word("page_token", position.run)?)))
}

impl From<ListWaits> for wire::ListWaitsRequest {
    fn from(page: ListWaits) -> Self {
        let token = page.filter.after.as_ref().map(wait_position);
        Self {
            filter: Some(page.filter.into()),
            page_size: size(page.limit),
            page_token: token.unwrap_or_default(),
        }
    }
}

impl TryFrom<wire::ListWaitsRequest> for ListWaits {
    type Error = InvalidField;

    fn try_from(wire: wire::ListWaitsRequest) -> Result<Self, InvalidField> {
        let mut filter = filter::<WaitFilter, _>(wire.filter)?;
        if !wire.page_token.is_empty() {
            filter.after = Some(position_from_token(wire.page_token)?);
        }
        Ok(Self { filter, limit: limit(wire.page_size) })
    }
}

impl From<RunFilter> for wire::RunFilter {
    fn from(filter: RunFilter) -> Self {
        let status = |status: RunStatus| wire::RunStatus::from(status).into();
        Self {
            namespace: filter.namespace.to_wire(),
            workflow: filter.workflow.to_wire(),
            workflow_type: filter.workflow_type,
            statuses: filter.statuses.into_iter().map(status).collect(),
            started_from: filter.started_from.to_wire(),
            started_before: filter.started_before.to_wire(),
            query: filter.query,
        }
    }
}

impl TryFrom<wire::RunFilter> for RunFilter {
    type Error = InvalidField;

    fn try_from(wire: wire::RunFilter) -> Result<Self, InvalidField> {
        let status = |number| case::<RunStatus, wire::RunStatus>("statuses", number);
        Ok(Self {
            namespace: word("namespace", wire.namespace)?,
            workflow: word("workflow", wire.workflow)?,
            workflow_type: wire.workflow_type,
            statuses: wire.statuses.into_iter().map(status).collect::<Result<_, _>>()?,
            started_from: word("started_from", wire.started_from)?,
            started_before: word("started_before", wire.started_before)?,
            query: wire.query,
            // The engine fills in the namespaces that it serves, and reads the query.
            known: Default::default(),
            search: None,
            after: None,
        })
    }
}

impl From<WaitFilter> for wire::WaitFilter {
    fn from(filter: WaitFilter) -> Self {
        let place = |(shard, run): (ShardId, RunId)| wire::RunPlace {
            run: run.to_wire(),
            place: Some(Place::Shard(shard.number().into())),
        };
        let kind = filter.kind.map_or(wire::WaitKind::Unspecified, Into::into);
        Self {
            namespace: filter.namespace.to_wire(),
            run: filter.run.map(place),
            kind: kind.into(),
            name: filter.name,
            until: filter.until.to_wire(),
            workflow: filter.workflow.to_wire(),
            workflow_type: filter.workflow_type,
            since_before: filter.since_before.to_wire(),
        }
    }
}

impl TryFrom<wire::WaitFilter> for WaitFilter {
    type Error = InvalidField;

    fn try_from(wire: wire::WaitFilter) -> Result<Self, InvalidField> {
        let kind = match wire.kind {
            0 => None,
            number => Some(case::<_, wire::WaitKind>("kind", number)?),
        };
        if wire.name.is_some() && kind.is_none() {
            return Err(InvalidField::new("name", "requires a kind"));
        }
        Ok(Self {
            namespace: word("namespace", wire.namespace)?,
            run: wire.run.map(run_place).transpose().map_err(|error| error.inside("run"))?,
            kind,
            name: wire.name,
            until: word("until", wire.until)?,
            workflow: word("workflow", wire.workflow)?,
            workflow_type: wire.workflow_type,
            since_before: word("since_before", wire.since_before)?,
            // The engine fills in the namespaces that it serves.
            known: Default::default(),
            after: None,
        })
    }
}

fn run_place(wire: wire::RunPlace) -> Result<(ShardId, RunId), InvalidField> {
    let shard = match wire.place {
        Some(Place::Shard(number)) => shard("shard", number)?,
        Some(Place::Workflow(workflow)) => {
            word::<WorkflowKey, _>("workflow", workflow)?.slot().shard()
        }
        None => return Err(missing("workflow")),
    };
    Ok((shard, word("run", wire.run)?))
}

pub(crate) fn filter<T, W>(wire: Option<W>) -> Result<T, InvalidField>
where
    T: TryFrom<W, Error = InvalidField> + Default,
{
    wire.map_or_else(|| Ok(T::default()), T::try_from).map_err(|error| error.inside("filter"))
}

/// Reads the position in the token of a page.
pub(crate) fn position_from_token(bytes: Bytes) -> Result<WaitPosition, InvalidField> {
    let position: wire::WaitPosition = token(bytes)?;
    Ok(WaitPosition {
        until: word("page_token", position.until)?,
        run: word("page_token", position.run)?,
        shard: shard("page_token", position.shard)?,
        wait: position.wait,
    })
}

fn token<T: Message + Default>(bytes: Bytes) -> Result<T, InvalidField> {
    T::decode(bytes).map_err(|_| InvalidField::new("page_token", "was not issued by this server"))
}

pub(crate) fn shard(field: &str, number: u32) -> Result<ShardId, InvalidField> {
    u8::try_from(number).ok().and_then(ShardId::new).ok_or_else(|| {
        InvalidField::new(field, format!("is {number}; shard numbers are below {}", ShardId::COUNT))
    })
}

pub(crate) fn size(limit: Option<usize>) -> u32 {
    limit.map_or(0, |limit| u32::try_from(limit).unwrap_or(u32::MAX))
}

pub(crate) fn limit(size: u32) -> Option<usize> {
    (size > 0).then(|| usize::try_from(size).unwrap_or(usize::MAX))
}
