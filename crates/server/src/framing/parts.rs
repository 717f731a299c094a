//! The bytes of a message in parts that follow each other, so that large stored bytes are sent as they
//! are, without a copy of all of them.

use std::collections::VecDeque;

use prost::{
    Message,
    bytes::{BufMut as _, Bytes, BytesMut},
};

/// MessageParts up to this size are copied together with their neighbours.
const SMALL: usize = 16 << 10;

/// Bytes in parts. A part is released when it has been taken.
#[derive(Default)]
pub(crate) struct MessageParts(VecDeque<Bytes>);

impl MessageParts {
    /// A message with its header. `rest` holds further fields of it, already encoded.
    pub(crate) fn framed(message: &impl Message, rest: &[Bytes]) -> Self {
        let encoded = message.encoded_len();
        let length = encoded + rest.iter().map(Bytes::len).sum::<usize>();
        let mut parts = Self::default();
        let mut small = BytesMut::with_capacity(5 + encoded);
        small.put_u8(0);
        // A length over the maximum never gets here: everything that is sent is bounded.
        small.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
        message.encode_raw(&mut small);
        for part in rest {
            if part.len() <= SMALL {
                small.extend_from_slice(part);
            } else {
                parts.push(small.split().freeze());
                parts.push(part.clone());
            }
        }
        parts.push(small.freeze());
        parts
    }

    fn push(&mut self, part: Bytes) {
        if !part.is_empty() {
            self.0.push_back(part);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes all bytes, if they are one part of less than `most` bytes.
    pub(super) fn take_small(&mut self, most: usize) -> Option<Bytes> {
        match self.0.len() {
            0 => Some(Bytes::new()),
            1 => self.0.pop_front_if(|part| part.len() < most),
            _ => None,
        }
    }

    /// Copies and takes the next bytes, at most so many.
    pub(crate) fn next(&mut self, most: usize) -> Vec<u8> {
        let mut chunk = Vec::with_capacity(most.min(self.len()));
        while let Some(part) = self.0.front_mut() {
            let room = most - chunk.len();
            if room == 0 {
                break;
            }
            chunk.extend_from_slice(&part.split_to(room.min(part.len())));
            if part.is_empty() {
                self.0.pop_front();
            }
        }
        chunk
    }
}

impl From<Bytes> for MessageParts {
    fn from(bytes: Bytes) -> Self {
        let mut parts = Self::default();
        parts.push(bytes);
        parts
    }
}

#[cfg(test)]
mod tests {
    use abide_core::codec::generated::WorkflowKey;

    use super::*;

    #[test]
    fn a_message_in_parts_is_the_message_in_one() {
        let whole = WorkflowKey { namespace: "n".repeat(20_000), workflow: "w".repeat(9) };
        let field = |namespace: &str, workflow: &str| {
            let key = WorkflowKey { namespace: namespace.into(), workflow: workflow.into() };
            Bytes::from(key.encode_to_vec())
        };
        let rest = [field(&whole.namespace, ""), field("", &whole.workflow)];
        for rest in [&rest[..], &rest[..1], &[]] {
            let mut parts = MessageParts::framed(&WorkflowKey::default(), rest);
            let length = parts.len();
            let mut bytes = Vec::new();
            while !parts.is_empty() {
                let chunk = parts.next(7_000);
                assert!(chunk.len() == 7_000 || parts.is_empty(), "chunks are full");
                bytes.extend(chunk);
            }
            assert_eq!(bytes.len(), length);
            assert_eq!(bytes[1..5], u32::try_from(length - 5).unwrap().to_be_bytes());
            let decoded = WorkflowKey::decode(&bytes[5..]).expect("a message");
            assert_eq!(decoded.encoded_len(), rest.iter().map(Bytes::len).sum::<usize>());
        }
    }
}
