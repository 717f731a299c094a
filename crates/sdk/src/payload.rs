//! Encoding of values as payloads: JSON, one payload per argument, with the encoding in the
//! metadata. Bytes and protobuf messages are [`Binary`](crate::Binary) and `Proto`; data that must not
//! be decoded is passed on as [`RawPayload`].

use std::any::{TypeId, type_name};

pub use abide_core::payload::{Payload, Payloads, Size};
use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};

use crate::arguments::ArgumentList;

/// The metadata key that names the encoding.
pub(crate) const ENCODING: &str = "encoding";

/// The encoding of values that serde can serialize.
const JSON: &str = "json/plain";

/// What can be an argument or a result: every type that serde can serialize and deserialize,
/// [`Binary`](crate::Binary), `Proto` with the feature `protobuf`, and [`RawPayload`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument or a result",
    label = "cannot be written to history",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it; it must own its data"
)]
pub trait PayloadValue: Sized + 'static {
    /// Encodes the value; none for `()`.
    fn to_payload(&self) -> Result<Option<Payload>, PayloadError>;

    /// Decodes the payload; none means that the argument was not sent.
    fn from_payload(payload: Option<&Payload>) -> Result<Self, PayloadError>;
}

/// A payload as it is, for code that passes data along without decoding it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawPayload(pub Payload);

/// A value could not be encoded, or a payload could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: {message}")]
pub struct PayloadError {
    subject: String,
    message: String,
}

impl PayloadError {
    pub(crate) fn new(message: String) -> Self {
        Self { subject: "data".into(), message }
    }

    /// The same error with the name of the data that it is about.
    #[must_use]
    pub fn of(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }
}

impl<T: Serialize + DeserializeOwned + 'static> PayloadValue for T {
    fn to_payload(&self) -> Result<Option<Payload>, PayloadError> {
        if TypeId::of::<T>() == TypeId::of::<()>() {
            return Ok(None);
        }
        let data = serde_json::to_vec(self).map_err(|error| {
            PayloadError::new(format!("{} cannot be written as JSON: {error}", type_name::<T>()))
        })?;
        Ok(Some(with_encoding(JSON, data)))
    }

    fn from_payload(payload: Option<&Payload>) -> Result<Self, PayloadError> {
        // A missing payload is decoded as null, so that `()` and optional arguments need no
        // payload.
        let Some(payload) = payload else {
            return serde_json::from_slice(b"null").map_err(|_| missing::<T>());
        };
        // Other data may be valid JSON by accident: encoded data is, if it is a reference.
        let data = of_encoding::<T>(JSON, Some(payload))?;
        let unreadable = |error| format!("cannot be read as {}: {error}", type_name::<T>());
        serde_json::from_slice(data).map_err(|error| PayloadError::new(unreadable(error)))
    }
}

impl PayloadValue for RawPayload {
    fn to_payload(&self) -> Result<Option<Payload>, PayloadError> {
        Ok(Some(self.0.clone()))
    }

    fn from_payload(payload: Option<&Payload>) -> Result<Self, PayloadError> {
        Ok(Self(payload.cloned().unwrap_or_default()))
    }
}

/// A payload of this encoding.
pub(crate) fn with_encoding(encoding: &'static str, data: impl Into<Bytes>) -> Payload {
    let encoding = (ENCODING.to_owned(), Bytes::from_static(encoding.as_bytes()));
    Payload { metadata: [encoding].into(), data: data.into() }
}

/// The data of a payload that must have this encoding.
pub(crate) fn of_encoding<'a, T>(
    encoding: &str,
    payload: Option<&'a Payload>,
) -> Result<&'a Bytes, PayloadError> {
    let payload = payload.ok_or_else(missing::<T>)?;
    match payload.metadata.get(ENCODING) {
        Some(found) if found != encoding => Err(other_encoding::<T>(found, encoding)),
        _ => Ok(&payload.data),
    }
}

fn missing<T>() -> PayloadError {
    PayloadError::new(format!("a value of type {} is missing", type_name::<T>()))
}

fn other_encoding<T>(found: &[u8], wanted: &str) -> PayloadError {
    let (found, reader) = (String::from_utf8_lossy(found), type_name::<T>());
    let hint = match found.as_ref() {
        "binary/plain" => "use Binary to read it",
        "binary/protobuf" => "use Proto to read it",
        found if found.starts_with("codec/") => "configure the codecs that wrote it",
        _ => "use RawPayload to read it",
    };
    PayloadError::new(format!("the encoding is {found}, but {reader} requires {wanted}; {hint}"))
}

/// Encodes one value; `()` has no payload.
pub fn encode<T: PayloadValue>(value: &T) -> Result<Payloads, PayloadError> {
    Ok(value.to_payload()?.into_iter().collect())
}

/// Decodes one value from the first payload, or from none.
pub fn decode<T: PayloadValue>(payloads: &[Payload]) -> Result<T, PayloadError> {
    T::from_payload(payloads.first())
}

/// How the arguments `I` of a definition are encoded: nothing, one value, or a tuple of several.
pub struct Arguments<I: ArgumentList> {
    encode: fn(&I::Value) -> Result<Payloads, PayloadError>,
    decode: fn(&[Payload]) -> Result<I::Value, PayloadError>,
}

impl<I: ArgumentList> Clone for Arguments<I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I: ArgumentList> Copy for Arguments<I> {}

impl<I: ArgumentList> Arguments<I> {
    /// Encodes the arguments, one payload each.
    pub fn encode(&self, input: &I::Value) -> Result<Payloads, PayloadError> {
        (self.encode)(input)
    }

    /// Decodes the arguments; payloads beyond the last are ignored.
    pub fn decode(&self, payloads: &[Payload]) -> Result<I::Value, PayloadError> {
        (self.decode)(payloads)
    }
}

impl Arguments<()> {
    /// For a definition without arguments: no payload.
    pub const fn none() -> Self {
        Self { encode: |&()| Ok(Vec::new()), decode: |_| Ok(()) }
    }
}

impl<T: 'static> Arguments<(T,)> {
    /// For a definition with one argument: one payload.
    pub const fn one() -> Self
    where
        T: PayloadValue,
    {
        Self { encode: encode::<T>, decode: decode::<T> }
    }
}

macro_rules! several {
    ($(($($name:ident $index:tt),+))+) => {$(
        impl<$($name: 'static),+> Arguments<($($name,)+)> {
            /// For a definition with several arguments: one payload each, in order.
            pub const fn several() -> Self
            where
                $($name: PayloadValue),+
            {
                Self {
                    encode: |input| Ok(vec![$(positional(&input.$index)?),+]),
                    decode: |payloads| Ok(($(argument::<$name>(payloads, $index)?,)+)),
                }
            }
        }
    )+};
}

several! {
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}

/// An argument that keeps its position: `()` among others is encoded as null.
fn positional<T: PayloadValue>(value: &T) -> Result<Payload, PayloadError> {
    Ok(value.to_payload()?.unwrap_or_else(|| Payload::new("null")))
}

fn argument<T: PayloadValue>(payloads: &[Payload], index: usize) -> Result<T, PayloadError> {
    let number = index + 1;
    T::from_payload(payloads.get(index)).map_err(|error| error.of(format!("argument {number}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: PayloadValue>(value: &T) -> T {
        decode(&encode(value).unwrap()).unwrap()
    }

    #[test]
    fn values_come_back() {
        assert_eq!(round_trip(&"text".to_owned()), "text");
        assert_eq!(round_trip(&None::<u32>), None);
        let raw = RawPayload(Payload::new("as it is"));
        assert_eq!(round_trip(&raw), raw);
    }

    #[test]
    fn nothing_is_no_payload() {
        assert_eq!(encode(&()).unwrap(), []);
        assert_eq!(decode::<()>(&[]), Ok(()));
        assert_eq!(decode::<Option<String>>(&[]), Ok(None));
    }

    #[test]
    fn one_payload_per_argument() {
        let arguments = Arguments::<(u8, String)>::several();
        let payloads = arguments.encode(&(7, "x".to_owned())).unwrap();
        assert_eq!(payloads.len(), 2);
        assert_eq!(arguments.decode(&payloads), Ok((7, "x".to_owned())));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let says = |error: Result<u8, PayloadError>, text: &str| {
            let error = error.unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        };
        says(decode(&[]), "data: a value of type u8 is missing");
        says(decode(&[Payload::new("\"x\"")]), "cannot be read as u8: invalid type: string");
        let value = |text: String| decode::<serde_json::Value>(&[Payload::new(text)]).map(|_| 0);
        assert_eq!(value(format!("{}{}", "[".repeat(127), "]".repeat(127))), Ok(0));
        // A level takes a byte, so a payload could have millions of them.
        says(value("[".repeat(1 << 20)), "recursion limit exceeded");
        says(value("{\"a\":".repeat(1 << 18)), "recursion limit exceeded");
        let encoding = (ENCODING.to_owned(), Bytes::from("binary/zstd"));
        let foreign = Payload { metadata: [encoding].into(), data: Bytes::from("??") };
        says(decode(&[foreign]), "the encoding is binary/zstd");
        let arguments = Arguments::<(u8, u8)>::several();
        let error = arguments.decode(&[Payload::new("1")]).unwrap_err();
        assert_eq!(error.to_string(), "argument 2: a value of type u8 is missing");
    }
}
