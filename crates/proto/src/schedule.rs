//! Schedules, as messages.

use abide_core::{
    codec::Wire,
    ids::WorkflowKey,
    limits::InvalidField,
    operation::{
        ChangeSchedule, CreateSchedule, DeleteSchedule, DescribeSchedule, ListSchedules,
        ScheduleDescription, ScheduleRow, ScheduleRows,
    },
    schedule,
};

use crate::{
    field::{parts, word},
    generated as wire,
    list::{limit, position_from_token, size, wait_position},
};

/// The namespace and the id of a schedule.
fn place_to_wire(workflow: &WorkflowKey) -> (String, String) {
    let id = schedule::id_of(&workflow.workflow).unwrap_or_default();
    (workflow.namespace.to_wire(), id.to_owned())
}

fn place_from_wire(namespace: String, schedule_id: &str) -> WorkflowKey {
    schedule::key_of(namespace.into(), schedule_id)
}

impl From<CreateSchedule> for wire::CreateScheduleRequest {
    fn from(operation: CreateSchedule) -> Self {
        let CreateSchedule { workflow, schedule, paused, note, trigger, identity, key } = operation;
        let (namespace, schedule_id) = place_to_wire(&workflow);
        let (schedule, key) = (schedule.to_wire(), key.to_wire());
        Self { namespace, schedule_id, schedule, paused, note, trigger, identity, key }
    }
}

impl TryFrom<wire::CreateScheduleRequest> for CreateSchedule {
    type Error = InvalidField;

    fn try_from(wire: wire::CreateScheduleRequest) -> Result<Self, InvalidField> {
        Ok(Self {
            workflow: place_from_wire(wire.namespace, &wire.schedule_id),
            schedule: word("schedule", wire.schedule)?,
            paused: wire.paused,
            note: wire.note,
            trigger: wire.trigger,
            identity: wire.identity,
            key: word("key", wire.key)?,
        })
    }
}

impl From<ChangeSchedule> for wire::ChangeScheduleRequest {
    fn from(operation: ChangeSchedule) -> Self {
        let ChangeSchedule { workflow, change, revision, identity, key } = operation;
        let (namespace, schedule_id) = place_to_wire(&workflow);
        let (change, key) = (change.to_wire(), key.to_wire());
        Self { namespace, schedule_id, change, revision, identity, key }
    }
}

impl TryFrom<wire::ChangeScheduleRequest> for ChangeSchedule {
    type Error = InvalidField;

    fn try_from(wire: wire::ChangeScheduleRequest) -> Result<Self, InvalidField> {
        Ok(Self {
            workflow: place_from_wire(wire.namespace, &wire.schedule_id),
            change: word("change", wire.change)?,
            revision: wire.revision,
            identity: wire.identity,
            key: word("key", wire.key)?,
        })
    }
}

impl From<DeleteSchedule> for wire::DeleteScheduleRequest {
    fn from(DeleteSchedule { workflow, identity, key }: DeleteSchedule) -> Self {
        let (namespace, schedule_id) = place_to_wire(&workflow);
        Self { namespace, schedule_id, identity, key: key.to_wire() }
    }
}

impl TryFrom<wire::DeleteScheduleRequest> for DeleteSchedule {
    type Error = InvalidField;

    fn try_from(wire: wire::DeleteScheduleRequest) -> Result<Self, InvalidField> {
        let workflow = place_from_wire(wire.namespace, &wire.schedule_id);
        Ok(Self { workflow, identity: wire.identity, key: word("key", wire.key)? })
    }
}

impl From<DescribeSchedule> for wire::DescribeScheduleRequest {
    fn from(DescribeSchedule { workflow }: DescribeSchedule) -> Self {
        let (namespace, schedule_id) = place_to_wire(&workflow);
        Self { namespace, schedule_id }
    }
}

impl TryFrom<wire::DescribeScheduleRequest> for DescribeSchedule {
    type Error = InvalidField;

    fn try_from(wire: wire::DescribeScheduleRequest) -> Result<Self, InvalidField> {
        Ok(Self { workflow: place_from_wire(wire.namespace, &wire.schedule_id) })
    }
}

impl From<Box<ScheduleDescription>> for wire::ScheduleDescription {
    fn from(description: Box<ScheduleDescription>) -> Self {
        let ScheduleDescription { workflow, run, state, next_times } = *description;
        let (namespace, schedule_id) = place_to_wire(&workflow);
        Self {
            namespace,
            schedule_id,
            run: run.to_wire(),
            state: state.to_wire(),
            next_times: next_times.to_wire(),
        }
    }
}

impl TryFrom<wire::ScheduleDescription> for ScheduleDescription {
    type Error = InvalidField;

    fn try_from(wire: wire::ScheduleDescription) -> Result<Self, InvalidField> {
        Ok(Self {
            workflow: place_from_wire(wire.namespace, &wire.schedule_id),
            run: word("run", wire.run)?,
            state: word("state", wire.state)?,
            next_times: word("next_times", wire.next_times)?,
        })
    }
}

impl From<ListSchedules> for wire::ListSchedulesRequest {
    fn from(ListSchedules { namespace, after, limit }: ListSchedules) -> Self {
        Self {
            namespace: namespace.to_wire(),
            page_size: size(limit),
            page_token: after.as_ref().map(wait_position).unwrap_or_default(),
        }
    }
}

impl TryFrom<wire::ListSchedulesRequest> for ListSchedules {
    type Error = InvalidField;

    fn try_from(wire: wire::ListSchedulesRequest) -> Result<Self, InvalidField> {
        let token = Some(wire.page_token).filter(|token| !token.is_empty());
        Ok(Self {
            namespace: word("namespace", wire.namespace)?,
            after: token.map(position_from_token).transpose()?,
            limit: limit(wire.page_size),
        })
    }
}

impl From<ScheduleRows> for wire::ListSchedulesResponse {
    fn from(ScheduleRows { rows, next }: ScheduleRows) -> Self {
        Self {
            schedules: rows.into_iter().map(Into::into).collect(),
            next_page_token: next.as_ref().map(wait_position).unwrap_or_default(),
        }
    }
}

impl TryFrom<wire::ListSchedulesResponse> for ScheduleRows {
    type Error = InvalidField;

    fn try_from(wire: wire::ListSchedulesResponse) -> Result<Self, InvalidField> {
        let token = Some(wire.next_page_token).filter(|token| !token.is_empty());
        let rows = parts("schedules", wire.schedules)?;
        Ok(Self { rows, next: token.map(position_from_token).transpose()? })
    }
}

impl From<ScheduleRow> for wire::ScheduleSummary {
    fn from(ScheduleRow { workflow, listing }: ScheduleRow) -> Self {
        let (namespace, schedule_id) = place_to_wire(&workflow);
        Self { namespace, schedule_id, listing: listing.to_wire() }
    }
}

impl TryFrom<wire::ScheduleSummary> for ScheduleRow {
    type Error = InvalidField;

    fn try_from(wire: wire::ScheduleSummary) -> Result<Self, InvalidField> {
        let workflow = place_from_wire(wire.namespace, &wire.schedule_id);
        Ok(Self { workflow, listing: word("listing", wire.listing)? })
    }
}
