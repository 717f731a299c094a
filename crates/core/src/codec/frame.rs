//! The envelope around bodies, decoded and encoded field by field, because generated code would
//! decode a body into a message and lose its bytes. Here a body is a slice of its row.

use bytes::{Buf, Bytes};
use prost::{
    Message,
    encoding::{
        self, DecodeContext, WireType, decode_key, encode_key, encode_varint, encoded_len_varint,
        key_len, message, skip_field, uint64,
    },
};

use super::{
    body,
    error::{DecodeError, Problem},
    generated,
    wire::{Wire, field},
};
use crate::{event::Event, ids::EventNumber, note::Note};

/// The tag of `History.events` and of `Notes.notes`.
const ENTRY: u32 = 1;
const EVENT_NUMBER: u32 = 1;
const EVENT_TIME: u32 = 2;
const EVENT_BODY: u32 = 3;

/// Appends an entry of `History.events`. The bytes of a stored body are copied.
pub(super) fn put_event(buffer: &mut Vec<u8>, event: &Event) {
    let time: generated::Timestamp = event.time.to_wire();
    let body = body::Encoder::new(&event.body);
    let body_length = body.encoded_len();
    let event_length = uint64::encoded_len(EVENT_NUMBER, &event.number)
        + message::encoded_len(EVENT_TIME, &time)
        + delimited_length(EVENT_BODY, body_length);
    buffer.reserve(delimited_length(ENTRY, event_length));
    put_header(buffer, ENTRY, event_length);
    uint64::encode(EVENT_NUMBER, &event.number, buffer);
    message::encode(EVENT_TIME, &time, buffer);
    put_header(buffer, EVENT_BODY, body_length);
    body.encode(buffer);
}

/// Appends an entry of `Notes.notes`.
pub(super) fn put_note(buffer: &mut Vec<u8>, note: &Note) {
    let note: generated::Note = note.to_wire();
    let length = note.encoded_len();
    buffer.reserve(delimited_length(ENTRY, length));
    put_header(buffer, ENTRY, length);
    note.encode_raw(buffer);
}

/// Reads all entries of a `History` or a `Notes`.
pub(super) fn read_entries<T>(
    kind: &'static str,
    bytes: Bytes,
    read: impl Fn(Bytes) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let total = bytes.len();
    let mut rest = bytes;
    let mut entries = Vec::new();
    while rest.has_remaining() {
        let place = total - rest.len();
        let entry = next_entry(kind, &mut rest)
            .and_then(&read)
            .map_err(|error| error.within(&format!("{kind} entry at byte {place}")))?;
        entries.push(entry);
    }
    Ok(entries)
}

/// The part of a row with the events after `after`, and the number of its last event. No body is
/// decoded, and nothing is copied: events are stored in the order of their numbers.
pub(super) fn events_after(
    row: Bytes,
    after: EventNumber,
) -> Result<(Bytes, Option<EventNumber>), DecodeError> {
    let (mut rest, mut begin, mut last) = (row.clone(), 0, None);
    while rest.has_remaining() {
        let place = row.len() - rest.len();
        let number = next_entry("History", &mut rest)
            .and_then(event_number)
            .map_err(|error| error.within(&format!("History entry at byte {place}")))?;
        if number <= after {
            begin = row.len() - rest.len();
        }
        last = Some(number);
    }
    Ok((row.slice(begin..), last))
}

/// The number of an `Event`, which is its first field as it is written here.
fn event_number(mut rest: Bytes) -> Result<EventNumber, DecodeError> {
    let mut number = 0;
    while rest.has_remaining() {
        let (tag, wire_type) = decode_key(&mut rest)?;
        let context = DecodeContext::default();
        if tag == EVENT_NUMBER {
            uint64::merge(wire_type, &mut number, &mut rest, context)?;
            break;
        }
        skip_field(wire_type, tag, &mut rest, context)?;
    }
    Ok(number)
}

fn next_entry(kind: &'static str, rest: &mut Bytes) -> Result<Bytes, DecodeError> {
    let (tag, wire_type) = decode_key(rest)?;
    if tag != ENTRY {
        return Err(Problem::UnknownTag { message: kind, tag }.into());
    }
    slice(wire_type, rest)
}

/// Reads an `Event`, whose body keeps its bytes.
pub(super) fn read_event(mut rest: Bytes) -> Result<Event, DecodeError> {
    let mut number = 0;
    let mut time: Option<generated::Timestamp> = None;
    let mut body = None;
    while rest.has_remaining() {
        let (tag, wire_type) = decode_key(&mut rest)?;
        let context = DecodeContext::default();
        match tag {
            EVENT_NUMBER => uint64::merge(wire_type, &mut number, &mut rest, context)?,
            EVENT_TIME => message::merge(
                wire_type,
                time.get_or_insert_with(generated::Timestamp::default),
                &mut rest,
                context,
            )?,
            EVENT_BODY if body.is_some() => {
                return Err(DecodeError::from(Problem::Invalid("there twice")).inside("body"));
            }
            EVENT_BODY => body = Some(slice(wire_type, &mut rest)?),
            tag => return Err(Problem::UnknownTag { message: "Event", tag }.into()),
        }
    }
    let body = body
        .ok_or_else(|| Problem::Missing.into())
        .and_then(body::decode)
        .map_err(|error| error.within(&format!("event {number}")))?;
    Ok(Event { number, time: field("time", time)?, body })
}

/// The first tag in a message that is not one of `known`, which a newer version must have written.
/// Only called for a message that could not be decoded.
pub(super) fn unknown_tag(mut message: Bytes, known: &[u32]) -> Option<u32> {
    while message.has_remaining() {
        let (tag, wire_type) = decode_key(&mut message).ok()?;
        if !known.contains(&tag) {
            return Some(tag);
        }
        skip_field(wire_type, tag, &mut message, DecodeContext::default()).ok()?;
    }
    None
}

/// Decodes a message whose oneof `place` must be set. If it is not, the error names the tag that is
/// there instead; `known` are the tags outside the oneof.
pub(super) fn read_message<T, M>(
    message: &'static str,
    place: &str,
    known: &[u32],
    bytes: Bytes,
) -> Result<T, DecodeError>
where
    T: Wire<M>,
    M: Message + Default,
{
    T::from_wire(M::decode(bytes.clone())?).map_err(|error| {
        if error.place() != place || error.problem() != &Problem::UnknownCase {
            return error;
        }
        match unknown_tag(bytes, known) {
            Some(tag) => Problem::UnknownTag { message, tag }.into(),
            None => DecodeError::from(Problem::Missing).inside(place),
        }
    })
}

/// The value of a length-delimited field, sharing the memory of `rest`.
fn slice(wire_type: WireType, rest: &mut Bytes) -> Result<Bytes, DecodeError> {
    let mut value = Bytes::new();
    encoding::bytes::merge(wire_type, &mut value, rest, DecodeContext::default())?;
    Ok(value)
}

fn put_header(buffer: &mut Vec<u8>, tag: u32, length: usize) {
    encode_key(tag, WireType::LengthDelimited, buffer);
    encode_varint(length as u64, buffer);
}

/// Length of a field with its tag and its own length.
fn delimited_length(tag: u32, length: usize) -> usize {
    key_len(tag) + encoded_len_varint(length as u64) + length
}
