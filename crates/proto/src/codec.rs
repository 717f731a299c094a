//! Messages as bytes within a gRPC stream. Bytes that are no message are the caller's fault: they are
//! answered as an invalid argument, with the field at fault. So are messages of very many fields, before
//! memory is spent on them.

use std::{any::TypeId, marker::PhantomData};

use abide_core::limits::InvalidField;
use prost::{
    Message,
    bytes::Buf,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};
use tonic::{
    Status,
    codec::{DecodeBuf, EncodeBuf},
};

use crate::{
    error,
    generated::{CallsFrame, WorkerFrame},
};

/// Fields that a message has at most, each element of a list counted. An empty element has two bytes on
/// the wire and hundreds in memory; the longest honest list is that of all a run can have pending.
const FIELDS_MAX: usize = 1 << 16;

/// Encodes messages of one type and decodes those of another.
#[derive(Debug)]
pub struct Codec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = Encoder<T>;
    type Decoder = Decoder<U>;

    fn encoder(&mut self) -> Encoder<T> {
        Encoder(PhantomData)
    }

    fn decoder(&mut self) -> Decoder<U> {
        Decoder(PhantomData)
    }
}

/// Encodes messages.
#[derive(Debug)]
pub struct Encoder<T>(PhantomData<T>);

impl<T: Message> tonic::codec::Encoder for Encoder<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, item: T, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

/// Decodes messages.
#[derive(Debug)]
pub struct Decoder<U>(PhantomData<U>);

impl<U: Message + Default + 'static> tonic::codec::Decoder for Decoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        let decoded = check_fields(buffer.chunk(), counted_depth::<U>())
            .and_then(|()| U::decode(buffer).map_err(|error| undecodable(&error.to_string())));
        decoded.map(Some).map_err(|invalid| error::to_status(error::to_detail(invalid.into())))
    }
}

/// How deep fields are counted: in frames down to the commands of a task, which lie above all that
/// users choose the bytes of.
fn counted_depth<U: 'static>() -> usize {
    let frames = [TypeId::of::<CallsFrame>(), TypeId::of::<WorkerFrame>()];
    if frames.contains(&TypeId::of::<U>()) { 2 } else { 0 }
}

/// The message has no more fields than the bound.
fn check_fields(message: &[u8], depth: usize) -> Result<(), InvalidField> {
    let mut left = FIELDS_MAX;
    count_fields(message, depth, &mut left).ok_or_else(|| {
        let problem = format!("has more than {FIELDS_MAX} fields; send less at one time");
        InvalidField::new("request", problem)
    })
}

/// Takes the fields from those that are left, and gives nothing if they do not suffice. What is no
/// message is not counted: either it is a text, or the decoder says what is wrong with it.
fn count_fields(mut message: &[u8], depth: usize, left: &mut usize) -> Option<()> {
    while message.has_remaining() {
        let Ok((tag, wire_type)) = decode_key(&mut message) else { break };
        let field = message;
        if skip_field(wire_type, tag, &mut message, DecodeContext::default()).is_err() {
            break;
        }
        *left = left.checked_sub(1)?;
        if wire_type == WireType::LengthDelimited && depth > 0 {
            let mut content = &field[..field.len() - message.len()];
            // The length stands before the content, and was read already to skip it.
            if decode_varint(&mut content).is_ok() {
                count_fields(content, depth - 1, left)?;
            }
        }
    }
    Some(())
}

/// The field at fault and what is wrong with it. The decoder says them in one text: its own name, then
/// `Message.field` from the inside out, then the reason.
fn undecodable(error: &str) -> InvalidField {
    let mut reason = error.strip_prefix("failed to decode Protobuf message: ").unwrap_or(error);
    let mut path = Vec::new();
    while let Some((place, rest)) = reason.split_once(": ") {
        let Some((_, field)) = place.split_once('.').filter(|_| !place.contains(' ')) else {
            break;
        };
        path.insert(0, field);
        reason = rest;
    }
    let field = if path.is_empty() { "request".to_owned() } else { path.join(".") };
    InvalidField::new(field, format!("cannot be decoded: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::{
        Command, CompleteTask, Completion, NumberedCall, StartRunRequest, completion,
    };

    fn check<U: Message + 'static>(message: &U) -> Result<(), InvalidField> {
        check_fields(&message.encode_to_vec(), counted_depth::<U>())
    }

    #[test]
    fn very_many_fields_are_refused_before_they_are_decoded() {
        let frame = |calls| {
            let calls = vec![NumberedCall::default(); calls];
            CallsFrame { calls, ..CallsFrame::default() }
        };
        assert_eq!(check(&frame(FIELDS_MAX)), Ok(()));
        let refused = check(&frame(FIELDS_MAX + 1)).expect_err("one too many");
        assert!(refused.problem.contains("65536 fields"), "{}", refused.problem);
    }

    #[test]
    fn very_many_commands_are_refused_before_they_are_decoded() {
        let frame = |commands| {
            let commands = vec![Command::default(); commands];
            let task = CompleteTask { commands, ..CompleteTask::default() };
            let completion = Some(completion::Completion::CompleteTask(task));
            let completions = vec![Completion { number: 1, completion }];
            WorkerFrame { completions, ..WorkerFrame::default() }
        };
        assert_eq!(check(&frame(10_000)), Ok(()));
        assert!(check(&frame(FIELDS_MAX)).is_err());
    }

    #[test]
    fn the_field_at_fault_is_named() {
        let spec = [0x1a, 0x03, 0x0a, 0x01, 0xff];
        let error = StartRunRequest::decode(spec.as_slice()).expect_err("not UTF-8");
        let invalid = undecodable(&error.to_string());
        assert_eq!(invalid.field, "spec.workflow_type");
        assert!(invalid.problem.contains("UTF-8"), "{}", invalid.problem);
    }

    #[test]
    fn bytes_without_a_field_are_the_request() {
        let error = StartRunRequest::decode([0x07].as_slice()).expect_err("no message");
        assert_eq!(undecodable(&error.to_string()).field, "request");
    }
}
