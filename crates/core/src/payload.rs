//! User data, which the engine carries but never reads: metadata says how the bytes are encoded.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// One value of user data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// How to decode `data`: encoding, type, encryption key and so on.
    pub metadata: BTreeMap<String, Bytes>,
    pub data: Bytes,
}

impl Payload {
    /// A payload without metadata.
    pub fn new(data: impl Into<Bytes>) -> Self {
        Self { metadata: BTreeMap::new(), data: data.into() }
    }

    /// Size in bytes, for limits.
    pub fn size(&self) -> usize {
        let metadata: usize =
            self.metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
        metadata + self.data.len()
    }
}

/// Arguments of a call, in order.
pub type Payloads = Vec<Payload>;

/// Named payloads: headers, memo, search attributes.
pub type PayloadMap = BTreeMap<String, Payload>;

/// Size in bytes, for limits.
pub fn size(payloads: &[Payload]) -> usize {
    payloads.iter().map(Payload::size).sum()
}

/// Size in bytes, for limits.
pub fn map_size(map: &PayloadMap) -> usize {
    map.iter().map(|(name, payload)| name.len() + payload.size()).sum()
}

/// Data that a gateway needs to return a record in the form of another protocol; the engine carries
/// it but never reads it.
pub type Extension = BTreeMap<String, Bytes>;

/// Size in bytes, for limits.
pub fn extension_size(extension: &Extension) -> usize {
    extension.iter().map(|(name, value)| name.len() + value.len()).sum()
}
