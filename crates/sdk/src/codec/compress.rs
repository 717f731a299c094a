//! Compression: zlib, which every language and browser reads. Small payloads stay as they are, and
//! so do those that do not become smaller.

use std::io::{Read as _, Write as _};

use abide_core::payload::Payload;
use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};

use super::{Codec, CodecError, Codecs, encoded_payload, pack, unpack};
use crate::future::BoxFuture;

/// The encoding, and the name in messages.
const ZLIB: &str = "codec/zlib";

/// Payloads below this size are not worth it: a history row has about as much around them.
const SMALLEST: usize = 512;

/// The largest payload that is decompressed: more than the engine takes uncompressed, and little
/// enough that a few forged ones do not fill the memory.
const LARGEST: usize = 64 * 1024 * 1024;

/// Compresses payloads.
#[derive(Clone, Debug)]
pub struct Compress {
    smallest: usize,
    largest: usize,
}

impl Default for Compress {
    fn default() -> Self {
        Self { smallest: SMALLEST, largest: LARGEST }
    }
}

impl Compress {
    /// Compresses payloads of at least 512 bytes, and decompresses to at most 64 MiB.
    pub fn new() -> Self {
        Self::default()
    }

    /// The size in bytes from which on payloads are compressed.
    #[must_use]
    pub fn from_size(mut self, bytes: usize) -> Self {
        self.smallest = bytes;
        self
    }

    /// The largest size in bytes to which a payload is decompressed; a larger one is refused.
    #[must_use]
    pub fn to_size(mut self, bytes: usize) -> Self {
        self.largest = bytes;
        self
    }

    fn smaller(&self, payload: Payload) -> Result<Payload, CodecError> {
        if payload.size().bytes < self.smallest {
            return Ok(payload);
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        let written = encoder.write_all(&pack(&payload)).and_then(|()| encoder.finish());
        let data = written.map_err(|error| CodecError::refused(ZLIB, error.to_string()))?;
        let compressed = encoded_payload(ZLIB, data);
        Ok(if compressed.size().bytes < payload.size().bytes { compressed } else { payload })
    }

    fn original(&self, payload: &Payload) -> Result<Payload, CodecError> {
        let bound = u64::try_from(self.largest).unwrap_or(u64::MAX);
        let mut packed = Vec::new();
        let decoder = ZlibDecoder::new(&*payload.data);
        // One byte more than allowed tells a payload of that size from a larger one.
        let read = decoder.take(bound.saturating_add(1)).read_to_end(&mut packed);
        read.map_err(|error| CodecError::refused(ZLIB, format!("the data is damaged: {error}")))?;
        if packed.len() > self.largest {
            let message = format!(
                "the payload has {} bytes compressed and more than {} bytes decompressed; if that \
                 is intended, raise `Compress::to_size`",
                payload.data.len(),
                self.largest
            );
            return Err(CodecError::refused(ZLIB, message));
        }
        unpack(ZLIB, packed)
    }
}

impl Codec for Compress {
    fn name(&self) -> &str {
        ZLIB
    }

    fn reads(&self, encoding: &str) -> bool {
        encoding == ZLIB
    }

    fn encode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>> {
        Box::pin(async move { payloads.into_iter().map(|payload| self.smaller(payload)).collect() })
    }

    fn decode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>> {
        Box::pin(async move { payloads.iter().map(|payload| self.original(payload)).collect() })
    }
}

impl Codecs {
    /// Adds [`Compress`]. It belongs before encryption: encrypted data does not become smaller.
    #[must_use]
    pub fn compress(self) -> Self {
        self.with(Compress::new())
    }
}
