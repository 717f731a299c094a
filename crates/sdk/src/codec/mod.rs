//! Codecs: what happens to payloads between the SDK and the engine. A codec turns a whole payload
//! into another one, such as a compressed or an encrypted one, and back. Client and worker encode
//! all user data that they send and decode all that they get, so workflow code, activities and
//! callers never see encoded data, and the engine never sees anything else.
//!
//! ```
//! # #[cfg(feature = "codecs")] {
//! # extern crate abide_sdk as abide;
//! use abide::codec::{Codecs, Key, KeyRing};
//!
//! let keys = KeyRing::new(Key::generate("2026-05"));
//! let codecs = Codecs::new().compress().encrypt(keys);
//! // Client::connect("http://127.0.0.1:7233").await?.with_codecs(codecs)
//! # drop(codecs);
//! # }
//! ```
//!
//! Search attributes and the details of waits and approvals stay readable, because the engine and
//! people without keys read them. So do names, types, ids, reasons and, unless
//! [`Codecs::hide_failure_texts`] is set, the messages of failures.

#[cfg(feature = "codecs")]
mod blob;
#[cfg(feature = "codecs")]
mod compress;
#[cfg(feature = "codecs")]
mod encrypt;
#[cfg(feature = "codec-endpoint")]
mod endpoint;
mod error;
#[cfg(feature = "codecs")]
mod folder;
#[cfg(feature = "codecs")]
mod json;
#[cfg(feature = "codecs")]
mod keys;
mod texts;

use std::{fmt, sync::Arc};

use abide_core::{carried::Carrier, codec, event::Event};

pub use abide_core::payload::Payload;
pub use bytes::Bytes;

#[cfg(feature = "codec-endpoint")]
pub use self::endpoint::{CodecEndpoint, EndpointError};
pub use self::error::{CodecError, CodecProblem};
#[cfg(feature = "codecs")]
pub use self::{
    blob::{BlobError, BlobId, BlobStore, Offload},
    compress::Compress,
    encrypt::Encrypt,
    folder::LocalFolder,
    json::{PayloadsJson, PayloadsJsonError},
    keys::{Key, KeyError, KeyProvider, KeyRing},
};
use crate::{future::BoxFuture, payload::ENCODING};

/// How the encoding of every encoded payload begins, in its metadata.
pub const ENCODED: &str = "codec/";

/// The most codecs that one payload may have passed. A payload with more is refused.
const LAYERS_MAX: usize = 16;

/// Turns payloads into other payloads and back.
///
/// - An encoded payload has an `encoding` that begins with [`ENCODED`], such as `codec/zlib`; that is
///   how it is recognised. Keep the payload that was encoded in the data, metadata and all, with
///   [`pack`] and [`unpack`].
/// - The same payload should encode to the same bytes. The engine compares the content of requests
///   that are repeated with the same key, and refuses one whose bytes differ.
/// - Both functions return as many payloads as they were given, in the same order.
pub trait Codec: Send + Sync + 'static {
    /// The name in error messages.
    fn name(&self) -> &str;

    /// Whether payloads of this encoding are decoded by this codec.
    fn reads(&self, encoding: &str) -> bool;

    /// Encodes payloads. One that is not worth it is returned as it is.
    fn encode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>>;

    /// Decodes payloads, all of which have an encoding that this codec [`reads`](Codec::reads).
    fn decode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>>;
}

/// The codecs of a client and its workers. Payloads are encoded by one after the other, and decoded
/// from the outermost encoding inwards; so data is read whatever codecs wrote it, in whatever order,
/// as long as all of them are here. Data that was written without codecs is read as it is.
#[derive(Clone, Default)]
pub struct Codecs {
    chain: Vec<Arc<dyn Codec>>,
    hide_texts: bool,
    keep_unreadable: bool,
}

impl Codecs {
    /// No codecs: payloads are sent as they are.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a codec, which encodes what those before it return.
    #[must_use]
    pub fn with(mut self, codec: impl Codec) -> Self {
        self.chain.push(Arc::new(codec));
        self
    }

    /// Encodes the messages and stack traces of failures too, not only their details. Their types
    /// stay readable, because retry policies name them.
    #[must_use]
    pub fn hide_failure_texts(mut self) -> Self {
        self.hide_texts = true;
        self
    }

    /// Returns what cannot be decoded as it is, with a warning in the log: for programs that only
    /// show data. Workers never do that: code must not take another path because a key is missing.
    #[must_use]
    pub fn keep_unreadable(mut self) -> Self {
        self.keep_unreadable = true;
        self
    }

    /// The same codecs for a worker.
    pub(crate) fn strict(&self) -> Self {
        Self { keep_unreadable: false, ..self.clone() }
    }

    /// Whether payloads are sent as they are.
    pub fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    /// Encodes payloads.
    pub async fn encode(&self, mut payloads: Vec<Payload>) -> Result<Vec<Payload>, CodecError> {
        for codec in &self.chain {
            let count = payloads.len();
            payloads = counted(&**codec, count, codec.encode(payloads).await?)?;
        }
        Ok(payloads)
    }

    /// Decodes payloads.
    pub async fn decode(&self, mut payloads: Vec<Payload>) -> Result<Vec<Payload>, CodecError> {
        for _ in 0..LAYERS_MAX {
            let Some(outer) = payloads.iter().find_map(encoded) else { return Ok(payloads) };
            let Some(codec) = self.chain.iter().find(|codec| codec.reads(&outer)) else {
                return Err(CodecError::no_codec(&outer, self));
            };
            let is_its_own =
                |payload: &Payload| encoded(payload).is_some_and(|outer| codec.reads(&outer));
            let places: Vec<usize> =
                (0..payloads.len()).filter(|place| is_its_own(&payloads[*place])).collect();
            let own: Vec<Payload> =
                places.iter().map(|place| std::mem::take(&mut payloads[*place])).collect();
            let decoded = counted(&**codec, places.len(), codec.decode(own).await?)?;
            for (place, payload) in places.into_iter().zip(decoded) {
                payloads[place] = payload;
            }
        }
        match payloads.iter().find_map(encoded) {
            None => Ok(payloads),
            Some(outer) => Err(CodecError::refused(
                &outer,
                format!("was encoded more than {LAYERS_MAX} times"),
            )),
        }
    }

    /// Decodes the data of a history that was recorded as it is stored.
    pub async fn decode_history(&self, events: &mut Vec<Event>) -> Result<(), CodecError> {
        self.decode_all(events).await
    }

    /// Encodes all user data of a value. On an error the value is as it was.
    pub(crate) async fn encode_all(&self, value: &mut impl Carrier) -> Result<(), CodecError> {
        if self.is_empty() {
            return Ok(());
        }
        let mut carried = value.carried();
        let hidden = if self.hide_texts { texts::found(&carried.failures) } else { Vec::new() };
        let plain = carried.payloads.iter().map(|payload| (**payload).clone());
        let mut encoded = self.encode(plain.chain(hidden).collect()).await?.into_iter();
        for payload in &mut carried.payloads {
            **payload = encoded.next().unwrap_or_default();
        }
        texts::hide(&mut carried.failures, encoded);
        Ok(())
    }

    /// Fails if a value has encoded data: for programs without codecs.
    pub(crate) fn check_plain(&self, value: &mut impl Carrier) -> Result<(), CodecError> {
        let carried = value.carried();
        match carried.payloads.iter().find_map(|payload| encoded(payload)) {
            Some(encoding) => Err(CodecError::no_codec(&encoding, self)),
            None => Ok(()),
        }
    }

    /// Decodes all user data of a value. On an error the value is as it was.
    pub(crate) async fn decode_all(&self, value: &mut impl Carrier) -> Result<(), CodecError> {
        let mut carried = value.carried();
        let hidden = texts::hidden(&carried.failures)?;
        let nothing = carried.payloads.iter().all(|payload| encoded(payload).is_none());
        if nothing && hidden.is_empty() {
            return Ok(());
        }
        let sent = carried.payloads.iter().map(|payload| (**payload).clone());
        let sent = sent.chain(hidden).collect();
        let decoded = match self.keep_unreadable {
            true => self.decode_readable(sent).await,
            false => self.decode(sent).await?,
        };
        let mut decoded = decoded.into_iter();
        for payload in &mut carried.payloads {
            **payload = decoded.next().unwrap_or_default();
        }
        texts::show(&mut carried.failures, decoded)
    }
}

impl Codecs {
    /// Decodes the payloads that can be decoded.
    async fn decode_readable(&self, payloads: Vec<Payload>) -> Vec<Payload> {
        let error = match self.decode(payloads.clone()).await {
            Ok(decoded) => return decoded,
            Err(error) => error,
        };
        tracing::warn!("some data is shown encoded: {error}");
        if payloads.len() == 1 || error.problem() == CodecProblem::Unavailable {
            return payloads;
        }
        let mut kept = Vec::with_capacity(payloads.len());
        for payload in payloads {
            let decoded = self.decode(vec![payload.clone()]).await;
            kept.push(decoded.ok().and_then(|mut one| one.pop()).unwrap_or(payload));
        }
        kept
    }
}

/// The names of the codecs; they have secrets.
impl fmt::Debug for Codecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.chain.iter().map(|codec| codec.name())).finish()
    }
}

/// The payload that stands for an encoded one: this encoding, and these bytes.
pub fn sealed(encoding: &str, data: impl Into<Bytes>) -> Payload {
    let encoding = (ENCODING.to_owned(), Bytes::copy_from_slice(encoding.as_bytes()));
    Payload { metadata: [encoding].into(), data: data.into() }
}

/// A payload with its metadata as bytes, always the same for the same payload.
pub fn pack(payload: &Payload) -> Bytes {
    codec::encode_payload(payload)
}

/// The payload of these bytes, for the codec of this name.
pub fn unpack(codec: &str, bytes: impl Into<Bytes>) -> Result<Payload, CodecError> {
    codec::decode_payload(bytes.into())
        .map_err(|error| CodecError::refused(codec, format!("does not hold a payload: {error}")))
}

/// The encoding of a payload that a codec has written.
fn encoded(payload: &Payload) -> Option<String> {
    let encoding = payload.metadata.get(ENCODING)?;
    encoding.starts_with(ENCODED.as_bytes()).then(|| String::from_utf8_lossy(encoding).into_owned())
}

/// What a codec returned, if it is as much as it was given.
fn counted(
    codec: &dyn Codec,
    expected: usize,
    payloads: Vec<Payload>,
) -> Result<Vec<Payload>, CodecError> {
    let count = payloads.len();
    if count == expected {
        return Ok(payloads);
    }
    let problem = format!("was given {expected} payloads and returned {count}");
    Err(CodecError::refused(codec.name(), problem))
}

#[cfg(test)]
#[cfg(feature = "codecs")]
mod tests;
