//! Protobuf messages as arguments and results.

use std::{
    any::type_name,
    ops::{Deref, DerefMut},
};

use abide_core::payload::Payload;
use prost::Message;

use crate::payload::{PayloadError, PayloadValue, of_encoding, with_encoding};

/// The encoding of protobuf messages.
const PROTOBUF: &str = "binary/protobuf";

/// A protobuf message of the crate `prost` as an argument or a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Proto<M>(pub M);

impl<M: Message + Default + 'static> PayloadValue for Proto<M> {
    fn to_payload(&self) -> Result<Option<Payload>, PayloadError> {
        Ok(Some(with_encoding(PROTOBUF, self.0.encode_to_vec())))
    }

    fn from_payload(payload: Option<&Payload>) -> Result<Self, PayloadError> {
        let data = of_encoding::<Self>(PROTOBUF, payload)?;
        M::decode(data.clone()).map(Self).map_err(|error| {
            PayloadError::new(format!("cannot be read as {}: {error}", type_name::<M>()))
        })
    }
}

impl<M> From<M> for Proto<M> {
    fn from(message: M) -> Self {
        Self(message)
    }
}

impl<M> Deref for Proto<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.0
    }
}

impl<M> DerefMut for Proto<M> {
    fn deref_mut(&mut self) -> &mut M {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{decode, encode};

    #[derive(Clone, PartialEq, Message)]
    struct Parcel {
        #[prost(string, tag = "1")]
        street: String,
        #[prost(uint32, tag = "2")]
        grams: u32,
    }

    #[test]
    fn messages_come_back() {
        let parcel = Proto(Parcel { street: "Elm".into(), grams: 250 });
        let payloads = encode(&parcel).unwrap();
        assert_eq!(payloads[0].metadata["encoding"], PROTOBUF);
        assert_eq!(payloads[0].data, parcel.encode_to_vec());
        assert_eq!(decode(&payloads), Ok(parcel));
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let broken = with_encoding(PROTOBUF, &b"\xff\xff"[..]);
        let error = decode::<Proto<Parcel>>(&[broken]).unwrap_err().to_string();
        assert!(error.contains("cannot be read as") && error.contains("Parcel"), "{error}");
        let json = encode(&1).unwrap();
        let error = decode::<Proto<Parcel>>(&json).unwrap_err().to_string();
        assert!(error.contains("the encoding is json/plain"), "{error}");
    }
}
