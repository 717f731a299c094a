//! Values of search attributes and of other fields. Values of the same type have an order; as bytes of an
//! index they have the same one, in every store.

use std::cmp::Ordering;

use super::AttributeKind;
use crate::{
    ids::RunId,
    list::{RunStatus, WaitKind},
    time::Timestamp,
};

/// One value. Values of different types are never compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Text(String),
    Int(i64),
    Double(Finite),
    Bool(bool),
    Time(Timestamp),
    Status(RunStatus),
    Wait(WaitKind),
    Run(RunId),
}

/// A number that is neither infinite nor undefined; both zeros are one.
#[derive(Clone, Copy, Debug)]
pub struct Finite(f64);

impl Finite {
    pub fn new(number: f64) -> Option<Self> {
        // Adding zero turns the negative zero into the other one.
        number.is_finite().then_some(Self(number + 0.0))
    }

    pub const fn get(self) -> f64 {
        self.0
    }

    /// Eight bytes that sort as the numbers do: the bits of negative numbers are inverted, because more
    /// of them mean less.
    fn to_bytes(self) -> [u8; 8] {
        let bits = self.0.to_bits();
        let sign = 1 << 63;
        let sorted = if bits & sign == 0 { bits | sign } else { !bits };
        sorted.to_be_bytes()
    }

    fn from_bytes(bytes: [u8; 8]) -> Option<Self> {
        let sorted = u64::from_be_bytes(bytes);
        let sign = 1 << 63;
        let bits = if sorted & sign == 0 { !sorted } else { sorted & !sign };
        Self::new(f64::from_bits(bits))
    }
}

impl PartialEq for Finite {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Finite {}

impl PartialOrd for Finite {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Finite {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Value {
    /// The value as an index keeps it: the number of its type, then bytes that sort like the values.
    pub fn to_entry(&self, kind: AttributeKind) -> Vec<u8> {
        let mut entry = vec![kind.number()];
        match self {
            Self::Text(text) => entry.extend(text.as_bytes()),
            Self::Int(number) => entry.extend((number.cast_unsigned() ^ (1 << 63)).to_be_bytes()),
            Self::Double(number) => entry.extend(number.to_bytes()),
            Self::Bool(yes) => entry.push(u8::from(*yes)),
            Self::Time(at) => entry.extend(at.to_sorted_bytes()),
            Self::Status(status) => entry.push(status.number()),
            Self::Wait(kind) => entry.push(kind.number()),
            Self::Run(run) => entry.extend(run.as_bytes()),
        }
        entry
    }

    /// The value of an index's entry; `None` if no attribute has such an entry.
    pub fn from_entry(entry: &[u8]) -> Option<Self> {
        let (kind, bytes) = entry.split_first()?;
        Some(match AttributeKind::from_number(*kind)? {
            AttributeKind::Keyword | AttributeKind::KeywordList | AttributeKind::Text => {
                Self::Text(String::from_utf8(bytes.to_vec()).ok()?)
            }
            AttributeKind::Int => {
                let number = u64::from_be_bytes(bytes.try_into().ok()?);
                Self::Int((number ^ (1 << 63)).cast_signed())
            }
            AttributeKind::Double => Self::Double(Finite::from_bytes(bytes.try_into().ok()?)?),
            AttributeKind::Bool => match bytes {
                [0] => Self::Bool(false),
                [1] => Self::Bool(true),
                _ => return None,
            },
            AttributeKind::Time => Self::Time(Timestamp::from_sorted_bytes(bytes)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_sort_as_their_values() {
        let check = |kind: AttributeKind, values: Vec<Value>| {
            assert!(values.is_sorted(), "{values:?}");
            let entries: Vec<_> = values.iter().map(|value| value.to_entry(kind)).collect();
            assert!(entries.is_sorted(), "{entries:?}");
            let read: Vec<_> = entries.iter().filter_map(|it| Value::from_entry(it)).collect();
            assert_eq!(read, values);
        };
        let texts = ["", "A", "a", "a ", "ab", "ä", "\u{10ffff}"];
        check(AttributeKind::Keyword, texts.map(|text| Value::Text(text.into())).into());
        let numbers = [i64::MIN, -256, -1, 0, 1, 255, 256, i64::MAX];
        check(AttributeKind::Int, numbers.map(Value::Int).into());
        let numbers = [f64::MIN, -1.5, -1.0, -f64::MIN_POSITIVE, -0.0, 5e-324, 0.1, 1e300];
        let numbers = numbers.map(|number| Value::Double(Finite::new(number).unwrap()));
        check(AttributeKind::Double, numbers.into());
        check(AttributeKind::Bool, [false, true].map(Value::Bool).into());
        let times = [(-62_135_596_800, 0), (-1, 999_999_999), (0, 0), (0, 1), (253_402_300_799, 5)];
        let times =
            times.map(|(seconds, nanos)| Value::Time(Timestamp::new(seconds, nanos).unwrap()));
        check(AttributeKind::Time, times.into());
        assert_eq!(Value::from_entry(&[0, 1]), None);
        assert_eq!(Value::from_entry(&[AttributeKind::Bool.number(), 2]), None);
        assert!(Finite::new(f64::NAN).is_none() && Finite::new(f64::INFINITY).is_none());
    }
}
