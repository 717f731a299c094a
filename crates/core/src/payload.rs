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

    /// Its size, for limits.
    #[doc(hidden)]
    pub fn size(&self) -> Size {
        let own = Size { bytes: self.data.len(), items: 1 };
        own + extension_size(&self.metadata)
    }
}

/// The size of user data, for limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes of all names and values.
    pub bytes: usize,
    /// Number of payloads and of entries of maps. Each takes memory beside its bytes.
    pub items: usize,
}

/// Memory of an item beside its bytes, roughly.
const ITEM_MEMORY: usize = 100;

impl Size {
    /// Bytes of memory that the data takes, roughly.
    pub const fn memory(self) -> usize {
        self.bytes.saturating_add(self.items.saturating_mul(ITEM_MEMORY))
    }
}

impl std::ops::Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, items: self.items + other.items }
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), |sum, size| sum + size)
    }
}

/// Arguments of a call, in order.
pub type Payloads = Vec<Payload>;

/// Named payloads: headers, memo, search attributes.
pub type PayloadMap = BTreeMap<String, Payload>;

/// Applies changes: new values replace old ones, an empty payload removes one.
pub fn merge(map: &mut PayloadMap, changes: &PayloadMap) {
    for (name, value) in changes {
        if value.data.is_empty() {
            map.remove(name);
        } else {
            map.insert(name.clone(), value.clone());
        }
    }
}

/// The size of all of them, for limits.
pub fn size(payloads: &[Payload]) -> Size {
    payloads.iter().map(Payload::size).sum()
}

/// The size of all of them and of their names, for limits.
pub fn map_size(map: &PayloadMap) -> Size {
    map.iter().map(|(name, payload)| text_size(name) + payload.size()).sum()
}

/// The size of a text in a list, for limits.
pub fn text_size(text: &str) -> Size {
    Size { bytes: text.len(), items: 1 }
}

/// Data that a gateway needs to return a record in the form of another protocol; the engine carries
/// it but never reads it.
pub type Extension = BTreeMap<String, Bytes>;

/// The size of all entries, for limits.
pub fn extension_size(extension: &Extension) -> Size {
    let entry =
        |(name, value): (&String, &Bytes)| Size { bytes: name.len() + value.len(), items: 1 };
    extension.iter().map(entry).sum()
}
