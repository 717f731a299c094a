//! Conversion between values and their wire types. Containers and plain values are here; the tables
//! of the concept files describe the fields of each message.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::error::{DecodeError, Problem};

/// Items for which a decoded list may have unused room. A short list is not worth another
/// allocation.
const SPARE_MAX: usize = 32;

/// A value with the wire type `W`.
pub trait Wire<W>: Sized {
    fn to_wire(&self) -> W;

    fn from_wire(wire: W) -> Result<Self, DecodeError>;
}

/// Reads the field `name` of a message.
pub(super) fn field<T: Wire<W>, W>(name: &str, wire: W) -> Result<T, DecodeError> {
    T::from_wire(wire).map_err(|error| error.inside(name))
}

/// Reads a message that is always written, although protobuf lets it be absent.
pub(super) fn required<T: Wire<W>, W>(wire: Option<W>) -> Result<T, DecodeError> {
    T::from_wire(wire.ok_or(Problem::Missing)?)
}

macro_rules! plain {
    ($($type:ty),*) => { $(
        impl Wire<$type> for $type {
            fn to_wire(&self) -> $type {
                self.clone()
            }

            fn from_wire(wire: $type) -> Result<Self, DecodeError> {
                Ok(wire)
            }
        }
    )* };
}

plain!(bool, u32, u64, String, Bytes);

impl<T: Wire<W>, W> Wire<Option<W>> for Option<T> {
    fn to_wire(&self) -> Option<W> {
        self.as_ref().map(T::to_wire)
    }

    fn from_wire(wire: Option<W>) -> Result<Self, DecodeError> {
        wire.map(T::from_wire).transpose()
    }
}

impl<T: Wire<W>, W> Wire<Box<W>> for Box<T> {
    fn to_wire(&self) -> Box<W> {
        Box::new(T::to_wire(self))
    }

    fn from_wire(wire: Box<W>) -> Result<Self, DecodeError> {
        T::from_wire(*wire).map(Self::new)
    }
}

impl<T: Wire<W>, W> Wire<Vec<W>> for Vec<T> {
    fn to_wire(&self) -> Vec<W> {
        self.iter().map(T::to_wire).collect()
    }

    fn from_wire(wire: Vec<W>) -> Result<Self, DecodeError> {
        let mut list = wire.into_iter().map(T::from_wire).collect::<Result<Self, _>>()?;
        // The list is built where its messages were, which are larger, and had grown by doubling.
        if list.capacity() - list.len() > SPARE_MAX {
            list.shrink_to_fit();
        }
        Ok(list)
    }
}

impl<T: Wire<W> + Ord, W> Wire<Vec<W>> for BTreeSet<T> {
    fn to_wire(&self) -> Vec<W> {
        self.iter().map(T::to_wire).collect()
    }

    fn from_wire(wire: Vec<W>) -> Result<Self, DecodeError> {
        wire.into_iter().map(T::from_wire).collect()
    }
}

impl<T: Wire<W>, W> Wire<BTreeMap<String, W>> for BTreeMap<String, T> {
    fn to_wire(&self) -> BTreeMap<String, W> {
        self.iter().map(|(name, value)| (name.clone(), value.to_wire())).collect()
    }

    fn from_wire(wire: BTreeMap<String, W>) -> Result<Self, DecodeError> {
        wire.into_iter().map(|(name, value)| Ok((name, T::from_wire(value)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{codec::generated, payload::Payload};

    #[test]
    fn a_decoded_list_takes_no_more_memory_than_its_items() {
        let mut wire = Vec::new();
        for _ in 0..19_000 {
            wire.push(generated::Payload::default());
        }
        let list = Vec::<Payload>::from_wire(wire).expect("it decodes");
        assert_eq!(list.len(), 19_000);
        assert!(list.capacity() < 20_000, "room for {}", list.capacity());
    }
}
