//! User data, which the engine carries and never reads: metadata says how the bytes are encoded.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// One value of user data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// How to read `data`: encoding, type, encryption key and the like.
    pub metadata: BTreeMap<String, Bytes>,
    /// The bytes themselves.
    pub data: Bytes,
}

impl Payload {
    /// A payload without metadata.
    pub fn new(data: impl Into<Bytes>) -> Self {
        Self { metadata: BTreeMap::new(), data: data.into() }
    }

    /// Bytes that this payload occupies, for limits.
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

/// Bytes that the payloads occupy, for limits.
pub fn size(payloads: &[Payload]) -> usize {
    payloads.iter().map(Payload::size).sum()
}

/// Bytes that the named payloads occupy, for limits.
pub fn map_size(map: &PayloadMap) -> usize {
    map.iter().map(|(name, payload)| name.len() + payload.size()).sum()
}

/// What a gateway must keep of a foreign protocol to give a record back as it came; the engine
/// carries it and never reads it.
pub type Extension = BTreeMap<String, Bytes>;

/// Bytes that the extension occupies, for limits.
pub fn extension_size(extension: &Extension) -> usize {
    extension.iter().map(|(name, value)| name.len() + value.len()).sum()
}
