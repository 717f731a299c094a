//! Bytes as arguments and results, without JSON around them.

use std::ops::Deref;

use abide_core::payload::Payload;
use bytes::Bytes;

use crate::payload::{PayloadError, PayloadValue, of_encoding, with_encoding};

/// The encoding of bytes.
const BINARY: &str = "binary/plain";

/// Bytes as an argument or a result, such as an image or a document. They are stored as they are; a
/// `Vec<u8>` would be a list of numbers in JSON, four times as long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Binary(pub Bytes);

impl PayloadValue for Binary {
    fn to_payload(&self) -> Result<Option<Payload>, PayloadError> {
        Ok(Some(with_encoding(BINARY, self.0.clone())))
    }

    fn from_payload(payload: Option<&Payload>) -> Result<Self, PayloadError> {
        of_encoding::<Self>(BINARY, payload).map(|data| Self(data.clone()))
    }
}

impl<T: Into<Bytes>> From<T> for Binary {
    fn from(bytes: T) -> Self {
        Self(bytes.into())
    }
}

impl Deref for Binary {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{decode, encode};

    #[test]
    fn bytes_are_stored_as_they_are() {
        let image = Binary::from(vec![0xff, 0, 1]);
        let payloads = encode(&image).unwrap();
        assert_eq!(&*payloads[0].data, [0xff, 0, 1]);
        assert_eq!(decode::<Binary>(&payloads), Ok(image));
    }

    #[test]
    fn json_is_not_taken_for_bytes_nor_bytes_for_json() {
        let json = encode(&"text".to_owned()).unwrap();
        let error = decode::<Binary>(&json).unwrap_err().to_string();
        assert!(error.contains("the encoding is json/plain") && error.contains(BINARY), "{error}");
        let bytes = encode(&Binary::from("text")).unwrap();
        assert!(decode::<String>(&bytes).unwrap_err().to_string().contains(BINARY));
        let digits = encode(&Binary::from("42")).unwrap();
        assert!(decode::<u32>(&digits).unwrap_err().to_string().contains(BINARY));
        assert!(decode::<Binary>(&[]).unwrap_err().to_string().contains("missing"));
    }
}
