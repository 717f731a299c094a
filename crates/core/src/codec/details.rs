//! What lists show about runs and waits, and what the registry says about search attributes; opaque to
//! stores.

use bytes::Bytes;
use prost::Message;

use super::{
    error::DecodeError,
    generated,
    table::messages,
    wire::{Wire, field},
};
use crate::{
    event::WaitDetails,
    payload::PayloadMap,
    schedule::ScheduleListing,
    search::{AttributeKind, Definitions},
};

/// What lists show about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunDetails {
    /// Unindexed data for people.
    pub memo: PayloadMap,
    /// Indexed data for lists.
    pub search_attributes: PayloadMap,
}

messages! {
    RunDetails { memo, search_attributes }
    ScheduleListing { workflow_type, summary, paused, note, next, running }
}

pub(super) fn encode_run(details: &RunDetails) -> Bytes {
    let message: generated::RunDetails = details.to_wire();
    message.encode_to_vec().into()
}

pub(super) fn decode_run(bytes: Bytes) -> Result<RunDetails, DecodeError> {
    RunDetails::from_wire(generated::RunDetails::decode(bytes)?)
}

pub(super) fn encode_wait(
    details: Option<&WaitDetails>,
    schedule: Option<&ScheduleListing>,
) -> Bytes {
    let details = details.map(WaitDetails::to_wire);
    let schedule = schedule.map(ScheduleListing::to_wire);
    generated::WaitRowDetails { details, schedule }.encode_to_vec().into()
}

pub(super) fn decode_wait(bytes: Bytes) -> Result<Option<WaitDetails>, DecodeError> {
    field("details", generated::WaitRowDetails::decode(bytes)?.details)
}

pub(super) fn decode_schedule(bytes: Bytes) -> Result<Option<ScheduleListing>, DecodeError> {
    field("schedule", generated::WaitRowDetails::decode(bytes)?.schedule)
}

pub(super) fn encode_definitions(attributes: &Definitions) -> Bytes {
    let kinds = attributes.iter().map(|(name, kind)| (name.to_owned(), kind.number().into()));
    generated::SearchAttributes { kinds: kinds.collect() }.encode_to_vec().into()
}

/// Attributes of a type that only a later version knows are left out.
pub(super) fn decode_definitions(bytes: Bytes) -> Result<Definitions, DecodeError> {
    let kinds = generated::SearchAttributes::decode(bytes)?.kinds.into_iter();
    let known = |number: u32| AttributeKind::from_number(u8::try_from(number).ok()?);
    Ok(kinds.filter_map(|(name, number)| Some((name, known(number)?))).collect())
}
