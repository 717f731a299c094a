//! Messages as trees of fields, known to the schema or not. They are written as protobuf; reading
//! finds the values in an answer.

use prost::encoding::{
    WireType, decode_key, decode_varint, encode_key, encode_varint, encoded_len_varint,
};

use crate::schema::{Kind, Schema};

/// A field of a message.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) tag: u32,
    pub(crate) value: Value,
}

/// What a field holds.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A number of variable length (varint).
    Number(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(Vec<u8>),
    Message(Vec<Part>),
    /// Bytes that replace the whole field, tag and length included.
    Raw(Vec<u8>),
}

pub(crate) fn encode(parts: &[Part]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        encode_part(part, &mut bytes);
    }
    bytes
}

fn encode_part(Part { tag, value }: &Part, bytes: &mut Vec<u8>) {
    match value {
        Value::Number(number) => {
            encode_key(*tag, WireType::Varint, bytes);
            encode_varint(*number, bytes);
        }
        Value::Fixed32(number) => {
            encode_key(*tag, WireType::ThirtyTwoBit, bytes);
            bytes.extend(number.to_le_bytes());
        }
        Value::Fixed64(number) => {
            encode_key(*tag, WireType::SixtyFourBit, bytes);
            bytes.extend(number.to_le_bytes());
        }
        Value::Bytes(content) => wrap(*tag, content, bytes),
        // No message of the schema contains itself, so the recursion is shallow.
        Value::Message(parts) => wrap(*tag, &encode(parts), bytes),
        Value::Raw(content) => bytes.extend(content),
    }
}

/// Writes a length-delimited field.
pub(crate) fn wrap(tag: u32, content: &[u8], bytes: &mut Vec<u8>) {
    encode_key(tag, WireType::LengthDelimited, bytes);
    encode_varint(content.len() as u64, bytes);
    bytes.extend(content);
}

/// A field nested inside itself, so many times.
pub(crate) fn nested(tag: u32, levels: usize) -> Vec<u8> {
    let mut key = Vec::new();
    encode_key(tag, WireType::LengthDelimited, &mut key);
    // The length of each level, from the inside out.
    let mut lengths = Vec::with_capacity(levels);
    let mut length = 0;
    for _ in 0..levels {
        lengths.push(length);
        length += key.len() + encoded_len_varint(length as u64);
    }
    let mut bytes = Vec::with_capacity(length);
    for length in lengths.into_iter().rev() {
        bytes.extend(&key);
        encode_varint(length as u64, &mut bytes);
    }
    bytes
}

/// Nested groups, an old form that decoders still have to skip. They need not be closed.
pub(crate) fn groups(tag: u32, levels: usize, ended: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..levels).for_each(|_| encode_key(tag, WireType::StartGroup, &mut bytes));
    if ended {
        (0..levels).for_each(|_| encode_key(tag, WireType::EndGroup, &mut bytes));
    }
    bytes
}

/// Visits every text, bytes field and message of an answer, with the type if it is a message. Stops
/// where the bytes cannot be read.
pub(crate) fn read(
    schema: &Schema,
    index: usize,
    mut message: &[u8],
    tell: &mut impl FnMut(&str, Option<usize>, &[u8]),
) {
    while let Ok((tag, wire_type)) = decode_key(&mut message) {
        let length = match wire_type {
            WireType::Varint => {
                if decode_varint(&mut message).is_err() {
                    return;
                }
                continue;
            }
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => {
                let Ok(length) = decode_varint(&mut message) else { return };
                usize::try_from(length).unwrap_or(usize::MAX)
            }
            WireType::StartGroup | WireType::EndGroup => return,
        };
        let Some((content, rest)) = message.split_at_checked(length) else { return };
        message = rest;
        let field = schema.messages[index].fields.iter().find(|field| field.tag == tag);
        match field.map(|field| (&field.name, &field.kind)) {
            Some((name, Kind::Message(inner))) => {
                tell(name, Some(*inner), content);
                read(schema, *inner, content, tell);
            }
            Some((name, Kind::Text | Kind::Bytes)) => tell(name, None, content),
            Some(_) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use abide_proto::generated::DescribeRunRequest;
    use prost::Message as _;

    use super::*;

    #[test]
    fn what_is_nested_is_a_message_of_as_many_levels() {
        assert_eq!(nested(1, 3), [0x0a, 4, 0x0a, 2, 0x0a, 0]);
        let deep = nested(1, 100_000);
        assert!(DescribeRunRequest::decode(deep.as_slice()).is_err(), "it is no description");
        assert_eq!(groups(1, 2, true), [0x0b, 0x0b, 0x0c, 0x0c]);
    }

    #[test]
    fn what_is_written_is_read() {
        let schema = Schema::read().expect("the schema");
        let describe = schema.method("/DescribeRun").expect("a method").input;
        let run = Part { tag: 2, value: Value::Bytes(vec![7; 16]) };
        let target = Part { tag: 1, value: Value::Message(vec![run]) };
        let mut told = Vec::new();
        read(&schema, describe, &encode(&[target]), &mut |name, _, content| {
            told.push((name.to_owned(), content.len()));
        });
        assert_eq!(told, [("target".to_owned(), 18), ("run".to_owned(), 16)]);
    }
}
