//! Encodes and decodes messages within a gRPC stream. Bytes that are not a message are the caller's
//! fault: the answer is an invalid argument that names the field. So is the answer to a request of
//! too many parts, before memory is spent on it.

use std::marker::PhantomData;

use abide_core::limits::InvalidField;
use prost::{Message, Name, bytes::Buf};
use tonic::{
    Status,
    codec::{DecodeBuf, EncodeBuf},
};

use crate::{
    error,
    parts::{self, PartCount},
};

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
    U: Name + Default + Send + 'static,
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

#[derive(Debug)]
pub struct Encoder<T>(PhantomData<T>);

impl<T: Message> tonic::codec::Encoder for Encoder<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, item: T, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

#[derive(Debug)]
pub struct Decoder<U>(PhantomData<U>);

impl<U: Name + Default + 'static> tonic::codec::Decoder for Decoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        let decoded = decode(buffer.chunk());
        buffer.advance(buffer.remaining());
        decoded.map(Some)
    }
}

/// Decodes a message. All of it is copied, so that a small part which is kept for long does not
/// keep the whole message in memory.
pub fn decode<U: Name + Default + 'static>(message: &[u8]) -> Result<U, Status> {
    decode_counted(message).map(|(decoded, _)| decoded)
}

/// The same, with the number of parts of the message.
pub fn decode_counted<U: Name + Default + 'static>(
    message: &[u8],
) -> Result<(U, PartCount), Status> {
    let decoded = parts::check::<U>(message).and_then(|count| {
        let decoded = U::decode(message).map_err(|error| undecodable(&error.to_string()))?;
        Ok((decoded, count))
    });
    decoded.map_err(|invalid| error::to_status(error::to_detail(invalid.into())))
}

/// Encodes a message as it stands in a stream: a flag for "not compressed", its length, and its
/// bytes.
pub fn encode<T: Message>(message: &T) -> Vec<u8> {
    let length = message.encoded_len();
    let mut framed = Vec::with_capacity(5 + length);
    framed.push(0);
    // A length over the maximum never gets here: everything that is sent is bounded.
    framed.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    message.encode_raw(&mut framed);
    framed
}

/// Finds the field at fault and the reason. The decoder reports them in one text: its own name,
/// then `Message.field` from the inside out, then the reason.
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
    use crate::generated::StartRunRequest;

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
