//! Large payloads by reference: the payload goes into a store of large objects, and what is sent
//! instead names it by the hash of its content.

use std::{fmt, str::FromStr, sync::Arc};

use abide_core::payload::Payload;
use bytes::Bytes;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::{Codec, CodecError, Codecs, encoded_payload, pack, unpack};
use crate::future::BoxFuture;

/// The encoding, and the name in messages.
const REFERENCE: &str = "codec/reference";

/// Payloads from this size on are stored outside: histories stay small, and small payloads cost no
/// round trip.
const SMALLEST: usize = 128 * 1024;

/// The largest payload that is stored or read.
const LARGEST: usize = 64 * 1024 * 1024;

/// Bytes of a hash.
const HASH_BYTES: usize = 32;

/// The name of a stored object: the SHA-256 hash of its content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobId([u8; HASH_BYTES]);

impl BlobId {
    /// The name of this content.
    pub fn of(content: &[u8]) -> Self {
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(digest(&SHA256, content).as_ref());
        Self(hash)
    }
}

/// In hexadecimal: 64 digits, safe in file names and addresses.
impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BlobId {
    type Err = BlobError;

    fn from_str(text: &str) -> Result<Self, BlobError> {
        let wrong = || BlobError::Unavailable("the name of an object is not a hash".into());
        let mut hash = [0; HASH_BYTES];
        if text.len() != 2 * HASH_BYTES || !text.is_ascii() {
            return Err(wrong());
        }
        for (byte, at) in hash.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(hash))
    }
}

/// Why a store could not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// There is no such object.
    #[error("there is no such object")]
    Missing,
    /// The store does not answer, or is full; another try may succeed.
    #[error("{0}")]
    Unavailable(String),
}

/// A store of large objects, such as a bucket. [`LocalFolder`](super::LocalFolder) is one. Clients and
/// workers must reach the same one. Objects never change, and Abide never removes any.
pub trait BlobStore: Send + Sync + 'static {
    /// Stores an object. When this returns, it is durable. The same object may be stored again.
    fn put(&self, id: BlobId, content: Bytes) -> BoxFuture<'_, Result<(), BlobError>>;

    /// Reads an object of this size; what is returned is compared with its hash.
    fn get(&self, id: BlobId, size: usize) -> BoxFuture<'_, Result<Bytes, BlobError>>;
}

/// Stores large payloads outside of histories.
#[derive(Clone)]
pub struct Offload {
    store: Arc<dyn BlobStore>,
    smallest: usize,
    largest: usize,
}

/// What is sent in place of a payload.
#[derive(Serialize, Deserialize)]
struct Reference {
    sha256: String,
    size: usize,
}

impl Offload {
    /// Stores payloads from 128 KiB on, up to 64 MiB.
    pub fn new(store: impl BlobStore) -> Self {
        Self { store: Arc::new(store), smallest: SMALLEST, largest: LARGEST }
    }

    /// The size in bytes from which on payloads are stored outside.
    #[must_use]
    pub fn from_size(mut self, bytes: usize) -> Self {
        self.smallest = bytes;
        self
    }

    /// The largest size in bytes of a payload that is stored or read.
    #[must_use]
    pub fn to_size(mut self, bytes: usize) -> Self {
        self.largest = bytes;
        self
    }

    async fn put(&self, payload: Payload) -> Result<Payload, CodecError> {
        if payload.size().bytes < self.smallest {
            return Ok(payload);
        }
        let content = pack(&payload);
        let (id, size) = (BlobId::of(&content), content.len());
        self.check(size)?;
        self.store.put(id, content).await.map_err(|error| {
            CodecError::unavailable(REFERENCE, format!("object {id} cannot be stored: {error}"))
        })?;
        let reference = Reference { sha256: id.to_string(), size };
        let data = serde_json::to_vec(&reference)
            .map_err(|error| CodecError::refused(REFERENCE, error.to_string()))?;
        Ok(encoded_payload(REFERENCE, data))
    }

    async fn get(&self, payload: Payload) -> Result<Payload, CodecError> {
        let damaged = || CodecError::refused(REFERENCE, "the reference is damaged");
        let Reference { sha256, size } =
            serde_json::from_slice(&payload.data).map_err(|_| damaged())?;
        let id: BlobId = sha256.parse().map_err(|_| damaged())?;
        self.check(size)?;
        let content = self.store.get(id, size).await.map_err(|error| match error {
            BlobError::Missing => {
                let message = format!(
                    "object {id} is not in the store: check that this program uses the store of \
                     the one that wrote it, and that the object was not removed too early"
                );
                CodecError::missing(REFERENCE, message)
            }
            BlobError::Unavailable(why) => {
                CodecError::unavailable(REFERENCE, format!("object {id} cannot be read: {why}"))
            }
        })?;
        if BlobId::of(&content) != id {
            let message = format!("object {id} in the store is damaged: restore it");
            return Err(CodecError::missing(REFERENCE, message));
        }
        unpack(REFERENCE, content)
    }

    fn check(&self, size: usize) -> Result<(), CodecError> {
        if size <= self.largest {
            return Ok(());
        }
        let message = format!(
            "the payload has {size} bytes, and at most {} are stored; if that is intended, raise \
             `Offload::to_size`",
            self.largest
        );
        Err(CodecError::refused(REFERENCE, message))
    }
}

impl Codec for Offload {
    fn name(&self) -> &str {
        REFERENCE
    }

    fn reads(&self, encoding: &str) -> bool {
        encoding == REFERENCE
    }

    fn encode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>> {
        Box::pin(async move {
            let mut stored = Vec::with_capacity(payloads.len());
            for payload in payloads {
                stored.push(self.put(payload).await?);
            }
            Ok(stored)
        })
    }

    fn decode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>> {
        Box::pin(async move {
            let mut read = Vec::with_capacity(payloads.len());
            for payload in payloads {
                read.push(self.get(payload).await?);
            }
            Ok(read)
        })
    }
}

impl Codecs {
    /// Adds [`Offload`] with this store. It belongs after encryption, so that the store has no
    /// readable data either.
    #[must_use]
    pub fn offload(self, store: impl BlobStore) -> Self {
        self.with(Offload::new(store))
    }
}
