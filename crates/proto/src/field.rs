//! Readers of single fields, shared by all conversions, and how they name the field at fault.

use abide_core::{
    codec::{DecodeError, Problem, Wire},
    limits::InvalidField,
};

/// A required field is missing.
pub(crate) fn missing(field: &str) -> InvalidField {
    InvalidField::new(field, "is missing")
}

/// Prefixes a problem with the field of the enclosing message.
pub(crate) trait Inside {
    /// The same problem, in field `outer`.
    fn inside(self, outer: &str) -> Self;
}

impl Inside for InvalidField {
    fn inside(mut self, outer: &str) -> Self {
        if !self.field.is_empty() {
            self.field.insert(0, '.');
        }
        self.field.insert_str(0, outer);
        self
    }
}

/// An error of the history codec, as an error of a request.
pub(crate) fn unreadable(error: &DecodeError) -> InvalidField {
    let problem = match error.problem() {
        Problem::UnknownTag { tag, .. } => format!("has the unknown tag {tag}"),
        Problem::UnknownCase => "has no known case set".to_owned(),
        Problem::UnknownValue { enumeration, value } => {
            format!("has the value {value}, which {enumeration} does not have")
        }
        Problem::Damaged(reason) => format!("cannot be decoded: {reason}"),
        Problem::Missing => "is missing".to_owned(),
        Problem::Invalid(what) => format!("is {what}"),
    };
    InvalidField::new(error.place(), problem)
}

/// Reads a field whose type belongs to the history format.
pub(crate) fn word<T: Wire<W>, W>(field: &str, wire: W) -> Result<T, InvalidField> {
    T::from_wire(wire).map_err(|error| unreadable(&error).inside(field))
}

/// Reads a required field that is a message of the API.
pub(crate) fn part<T, W>(field: &str, wire: Option<W>) -> Result<T, InvalidField>
where
    T: TryFrom<W, Error = InvalidField>,
{
    let wire = wire.ok_or_else(|| missing(field))?;
    T::try_from(wire).map_err(|error| error.inside(field))
}

/// Reads a field that is a list of messages of the API.
pub(crate) fn parts<T, W>(field: &str, wire: Vec<W>) -> Result<Vec<T>, InvalidField>
where
    T: TryFrom<W, Error = InvalidField>,
{
    let read = |(index, wire)| {
        T::try_from(wire).map_err(|error| error.inside(&format!("{field}[{index}]")))
    };
    wire.into_iter().enumerate().map(read).collect()
}

/// Reads an enumeration from its number.
pub(crate) fn case<T, W>(field: &str, number: i32) -> Result<T, InvalidField>
where
    W: TryFrom<i32>,
    T: TryFrom<W, Error = InvalidField>,
{
    let wire = W::try_from(number)
        .map_err(|_| InvalidField::new(field, format!("has the unknown value {number}")))?;
    T::try_from(wire).map_err(|error| error.inside(field))
}

/// Both conversions of an enum without data whose cases have the same names on the wire. The case
/// after `else` is the meaning of an absent value.
macro_rules! enumeration {
    ($core:ty, $name:ident { $($case:ident),* $(,)? } $(else $default:ident)?) => {
        impl From<$core> for $crate::generated::$name {
            fn from(value: $core) -> Self {
                match value {
                    $(<$core>::$case => Self::$case,)*
                }
            }
        }

        impl TryFrom<$crate::generated::$name> for $core {
            type Error = abide_core::limits::InvalidField;

            fn try_from(wire: $crate::generated::$name) -> Result<Self, Self::Error> {
                let absent = Err($crate::field::missing(""));
                $(let absent = absent.or(Ok(Self::$default));)?
                match wire {
                    $crate::generated::$name::Unspecified => absent,
                    $($crate::generated::$name::$case => Ok(Self::$case),)*
                }
            }
        }
    };
}

pub(crate) use enumeration;
