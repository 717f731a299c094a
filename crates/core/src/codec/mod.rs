//! Bytes of the log and of the rows beside it: protobuf, as `proto/history.proto` describes it.
//!
//! A log row is a piece of a `History` message and a piece of a `Notes` message, so concatenated
//! rows are valid messages. Stored bodies are never encoded again: a decoded body keeps its bytes,
//! and encoding copies them. Anything that this version does not know is an error, never a guess.

use bytes::Bytes;

use crate::{
    batch::Batch,
    digest::Digest,
    effect::{Effect, EffectOutcome},
    event::{Body, Event, WaitDetails},
    ids::EventNumber,
    note::{Note, Record},
    payload::Payload,
    schedule::{ScheduleChange, ScheduleListing},
    search::Definitions,
};

mod activity;
#[cfg(test)]
pub(crate) mod arbitrary;
mod basic;
mod batch;
mod body;
mod child;
mod details;
mod effect;
mod error;
#[cfg(test)]
mod examples;
mod failure;
mod frame;
#[allow(
    clippy::large_enum_variant,
    reason = "generated from the schema"
)]
#[rustfmt::skip]
pub mod generated;
#[cfg(test)]
mod golden;
mod marker;
mod note;
mod run;
mod schedule;
mod signal;
mod table;
mod task;
#[cfg(test)]
mod tests;
mod timer;
mod update;
mod wait;
mod wire;

pub use details::RunDetails;
pub use error::{DecodeError, Problem};
pub use wire::Wire;

/// Bytes of one log row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Entries of `History.events`.
    pub events: Bytes,
    /// Entries of `Notes.notes`.
    pub notes: Bytes,
}

/// Encodes the records of one transition.
pub fn encode_row(records: &[Record]) -> Row {
    let mut events = Vec::new();
    let mut notes = Vec::new();
    for record in records {
        match record {
            Record::Event(event) => frame::put_event(&mut events, event),
            Record::Note(note) => frame::put_note(&mut notes, note),
        }
    }
    Row { events: events.into(), notes: notes.into() }
}

/// Encodes events as a piece of a `History`.
pub fn encode_events<'a>(events: impl IntoIterator<Item = &'a Event>) -> Bytes {
    let mut bytes = Vec::new();
    events.into_iter().for_each(|event| frame::put_event(&mut bytes, event));
    bytes.into()
}

/// Decodes one log row: its events first, then its notes.
pub fn decode_row(row: &Row) -> Result<Vec<Record>, DecodeError> {
    let events = decode_events(row.events.clone())?;
    let notes = decode_notes(row.notes.clone())?;
    let events = events.into_iter().map(Record::Event);
    Ok(events.chain(notes.into_iter().map(Record::Note)).collect())
}

/// Decodes the events of one row, or of several concatenated rows.
pub fn decode_events(bytes: Bytes) -> Result<Vec<Event>, DecodeError> {
    frame::read_entries("History", bytes, frame::read_event)
}

/// The part of a row with the events after `after`, as it is stored, and the number of the row's last
/// event.
pub fn events_after(
    row: Bytes,
    after: EventNumber,
) -> Result<(Bytes, Option<EventNumber>), DecodeError> {
    frame::events_after(row, after)
}

/// Decodes the notes of one row, or of several concatenated rows.
pub fn decode_notes(bytes: Bytes) -> Result<Vec<Note>, DecodeError> {
    frame::read_entries("Notes", bytes, note::read)
}

/// Bytes of a body: the original ones, if it was decoded.
pub fn encode_body(body: &Body) -> Bytes {
    body::encode(body)
}

/// Decodes a body, which keeps `bytes`.
pub fn decode_body(bytes: Bytes) -> Result<Body, DecodeError> {
    body::decode(bytes).map_err(|error| error.within("body"))
}

/// Encodes an effect, for the outbox.
pub fn encode_effect(effect: &Effect) -> Bytes {
    effect::encode(effect)
}

pub fn decode_effect(bytes: Bytes) -> Result<Effect, DecodeError> {
    effect::decode(bytes).map_err(|error| error.within("effect"))
}

/// Encodes an answer, for the inbox.
pub fn encode_answer(answer: &EffectOutcome) -> Bytes {
    effect::encode_answer(answer)
}

pub fn decode_answer(bytes: Bytes) -> Result<EffectOutcome, DecodeError> {
    effect::decode_answer(bytes).map_err(|error| error.within("answer"))
}

/// Encodes a payload by itself, always to the same bytes, for codecs that keep a whole payload in
/// another one.
pub fn encode_payload(payload: &Payload) -> Bytes {
    basic::encode_payload(payload)
}

pub fn decode_payload(bytes: Bytes) -> Result<Payload, DecodeError> {
    basic::decode_payload(bytes).map_err(|error| error.within("payload"))
}

/// Digest of what is asked of a schedule: a repeat has the same.
pub fn digest_of_change(change: &ScheduleChange) -> Digest {
    schedule::digest(change)
}

/// Encodes what a wait shows, for its row. `None` becomes no bytes.
pub fn encode_wait_details(details: Option<&WaitDetails>) -> Bytes {
    details::encode_wait(details, None)
}

/// Encodes what the wait for a schedule's next time shows, for its row.
pub fn encode_schedule_wait(details: Option<&WaitDetails>, schedule: &ScheduleListing) -> Bytes {
    details::encode_wait(details, Some(schedule))
}

/// Decodes what a row of the wait for a schedule's next time shows.
pub fn decode_schedule_listing(bytes: Bytes) -> Result<Option<ScheduleListing>, DecodeError> {
    details::decode_schedule(bytes).map_err(|error| error.within("wait details"))
}

/// Decodes what a wait shows.
pub fn decode_wait_details(bytes: Bytes) -> Result<Option<WaitDetails>, DecodeError> {
    details::decode_wait(bytes).map_err(|error| error.within("wait details"))
}

/// Encodes what lists show of a run, for its row.
pub fn encode_run_details(details: &RunDetails) -> Bytes {
    details::encode_run(details)
}

/// Decodes what lists show of a run.
pub fn decode_run_details(bytes: Bytes) -> Result<RunDetails, DecodeError> {
    details::decode_run(bytes).map_err(|error| error.within("run details"))
}

/// Encodes the search attributes of a namespace, for the registry.
pub fn encode_definitions(attributes: &Definitions) -> Bytes {
    details::encode_definitions(attributes)
}

/// Decodes the search attributes of a namespace.
pub fn decode_definitions(bytes: Bytes) -> Result<Definitions, DecodeError> {
    details::decode_definitions(bytes).map_err(|error| error.within("search attributes"))
}

/// Encodes the batches of a namespace, for the registry.
pub fn encode_batches(batches: &[Batch]) -> Bytes {
    batch::encode_all(batches)
}

/// Decodes the batches of a namespace.
pub fn decode_batches(bytes: Bytes) -> Result<Vec<Batch>, DecodeError> {
    batch::decode_all(bytes).map_err(|error| error.within("batches"))
}
