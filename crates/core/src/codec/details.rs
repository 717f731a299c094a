//! What the rows of lists show: opaque to stores, read by whoever shows the list.

use bytes::Bytes;
use prost::Message;

use super::{
    error::DecodeError,
    generated,
    table::messages,
    wire::{Wire, field},
};
use crate::{event::WaitDetails, payload::PayloadMap};

/// What lists show of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunDetails {
    /// Unindexed facts for people.
    pub memo: PayloadMap,
    /// Indexed facts for lists.
    pub search_attributes: PayloadMap,
}

messages! {
    RunDetails { memo, search_attributes }
}

pub(super) fn encode_run(details: &RunDetails) -> Bytes {
    let message: generated::RunDetails = details.to_wire();
    message.encode_to_vec().into()
}

pub(super) fn decode_run(bytes: Bytes) -> Result<RunDetails, DecodeError> {
    RunDetails::from_wire(generated::RunDetails::decode(bytes)?)
}

pub(super) fn encode_wait(details: Option<&WaitDetails>) -> Bytes {
    let details = details.map(WaitDetails::to_wire);
    generated::WaitRowDetails { details }.encode_to_vec().into()
}

pub(super) fn decode_wait(bytes: Bytes) -> Result<Option<WaitDetails>, DecodeError> {
    field("details", generated::WaitRowDetails::decode(bytes)?.details)
}
