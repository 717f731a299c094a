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
mod room;
mod signals;
mod texts;

use std::{fmt, sync::Arc};

use abide_core::{carried::Carrier, codec, event::Event, limits::InvalidField};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

pub use abide_core::payload::Payload;
pub use bytes::Bytes;

#[cfg(feature = "codec-endpoint")]
pub use self::endpoint::{CodecEndpoint, EndpointError};
pub use self::error::{CodecError, CodecProblem};
use self::room::Room;
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

/// How many payloads are decoded at once. A history with 500 objects in a store that answers within
/// 30 ms is then read in one second, well within the time of a workflow task.
const AT_ONCE: usize = 16;

/// How many bytes a history, an answer or a request may have when it is decoded: much more than
/// workflow code should hold, and little enough for a worker to survive.
const DECODED_MAX: usize = 512 * 1024 * 1024;

/// Turns payloads into other payloads and back.
///
/// - An encoded payload has an `encoding` that begins with [`ENCODED`], such as `codec/zlib`; that is
///   how it is recognised. Keep the payload that was encoded in the data, metadata and all, with
///   [`pack`] and [`unpack`].
/// - The same payload should encode to the same bytes. The engine compares the content of requests
///   that are repeated with the same key, and refuses one whose bytes differ.
/// - Both functions return as many payloads as they were given, in the same order. Payloads are
///   decoded one by one, several at the same time, so that what they hold stays bounded.
pub trait Codec: Send + Sync + 'static {
    /// The name in error messages.
    fn name(&self) -> &str;

    /// Whether payloads of this encoding are decoded by this codec.
    fn reads(&self, encoding: &str) -> bool;

    /// Encodes payloads. One that is not worth it is returned as it is.
    fn encode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>>;

    /// Decodes payloads, all of which have an encoding that this codec [`reads`](Codec::reads).
    fn decode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>>;

    /// Whether only a holder of a key can have written what this codec decodes. See
    /// [`Codecs::require_encryption`].
    fn authenticates(&self) -> bool {
        false
    }
}

/// The codecs of a client and its workers. Payloads are encoded by one after the other, and decoded
/// from the outermost encoding inwards; so data is read whatever codecs wrote it, in whatever order,
/// as long as all of them are here. Data that was written without codecs is read as it is.
#[derive(Clone)]
pub struct Codecs {
    chain: Vec<Arc<dyn Codec>>,
    hide_texts: bool,
    keep_unreadable: bool,
    require_encryption: bool,
    skip_signals: bool,
    decoded_max: usize,
}

impl Default for Codecs {
    fn default() -> Self {
        Self {
            chain: Vec::new(),
            hide_texts: false,
            keep_unreadable: false,
            require_encryption: false,
            skip_signals: false,
            decoded_max: DECODED_MAX,
        }
    }
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

    /// Refuses payloads that are not encrypted: with this, the engine and others on the way cannot put
    /// plain data in the place of encrypted data. Switch it on when no history has plain data any more.
    /// Messages and types of failures stay as they are sent.
    #[must_use]
    pub fn require_encryption(mut self) -> Self {
        self.require_encryption = true;
        self
    }

    /// Lets workers refuse signals that they cannot decode, also for lack of a key or a codec. Without
    /// this, a run waits for the key, because a signal that was refused is lost. Each one that is
    /// refused is recorded in history, so this can be switched off again.
    #[must_use]
    pub fn skip_unreadable_signals(mut self) -> Self {
        self.skip_signals = true;
        self
    }

    /// How many bytes a history, an answer or a request may have when it is decoded; 512 MiB unless
    /// this is set. One that has more is refused.
    #[must_use]
    pub fn decode_at_most(mut self, bytes: usize) -> Self {
        self.decoded_max = bytes;
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
    pub async fn decode(&self, payloads: Vec<Payload>) -> Result<Vec<Payload>, CodecError> {
        self.decode_within(&Room::new(self.decoded_max), payloads).await
    }

    async fn decode_within(
        &self,
        room: &Room,
        payloads: Vec<Payload>,
    ) -> Result<Vec<Payload>, CodecError> {
        let decoding: Vec<_> =
            payloads.into_iter().map(|payload| self.decode_one(room, payload)).collect();
        stream::iter(decoding).buffered(AT_ONCE).try_collect().await
    }

    async fn decode_one(&self, room: &Room, mut payload: Payload) -> Result<Payload, CodecError> {
        let (mut authentic, mut held) = (false, payload.size().bytes);
        for _ in 0..LAYERS_MAX {
            let Some(outer) = encoded(&payload) else {
                return match authentic || !self.require_encryption {
                    true => Ok(payload),
                    false => Err(CodecError::not_encrypted()),
                };
            };
            let Some(codec) = self.chain.iter().find(|codec| codec.reads(&outer)) else {
                return Err(CodecError::no_codec(&outer, self));
            };
            authentic |= codec.authenticates();
            let decoded = counted(&**codec, 1, codec.decode(vec![payload]).await?)?;
            payload = decoded.into_iter().next().unwrap_or_default();
            let size = payload.size().bytes;
            room.take(size.saturating_sub(held), codec.name())?;
            held = held.max(size);
        }
        match encoded(&payload) {
            None => Ok(payload),
            Some(outer) => {
                let problem = format!("was encoded more than {LAYERS_MAX} times");
                Err(CodecError::refused(&outer, problem))
            }
        }
    }

    /// Decodes the data of a history that was recorded as it is stored. Programs use
    /// `abide::testing::decode_history`.
    #[doc(hidden)]
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

    /// A value as it is sent, to see whether it fits. What cannot be encoded now is returned as it is:
    /// it is encoded again when it is sent.
    pub(crate) async fn as_sent<T: Carrier>(&self, mut value: T) -> Result<T, InvalidField> {
        match self.encode_all(&mut value).await {
            Err(error) if error.problem() == CodecProblem::Refused => Err(error.as_invalid()),
            Ok(()) | Err(_) => Ok(value),
        }
    }

    /// Fails if a value has encoded data: for programs without codecs.
    pub(crate) fn check_plain(&self, value: &mut impl Carrier) -> Result<(), CodecError> {
        let carried = value.carried();
        let hidden = texts::hidden(&carried.failures)?;
        let mut all = carried.payloads.iter().map(|payload| &**payload).chain(&hidden);
        match all.find_map(encoded) {
            Some(encoding) => Err(CodecError::no_codec(&encoding, self)),
            None => Ok(()),
        }
    }

    /// Decodes all user data of a value. On an error the value is as it was.
    pub(crate) async fn decode_all(&self, value: &mut impl Carrier) -> Result<(), CodecError> {
        self.decode_all_within(&Room::new(self.decoded_max), value).await
    }

    async fn decode_all_within(
        &self,
        room: &Room,
        value: &mut impl Carrier,
    ) -> Result<(), CodecError> {
        let mut carried = value.carried();
        let hidden = texts::hidden(&carried.failures)?;
        let nothing = carried.payloads.iter().all(|payload| encoded(payload).is_none());
        if nothing && hidden.is_empty() && !self.require_encryption {
            return Ok(());
        }
        let sent = carried.payloads.iter().map(|payload| (**payload).clone());
        let sent = sent.chain(hidden).collect();
        let decoded = match self.keep_unreadable {
            true => self.decode_readable(sent).await,
            false => self.decode_within(room, sent).await?,
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
pub fn encoded_payload(encoding: &str, data: impl Into<Bytes>) -> Payload {
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
