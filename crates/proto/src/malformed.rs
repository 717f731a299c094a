//! Why a message makes no sense, and the small readers of fields that all conversions use.

use std::borrow::Cow;

use abide_core::codec::{DecodeError, Problem, Wire};

/// A message that makes no sense: the field at fault and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct Malformed {
    /// The path of fields, such as `target.workflow`.
    pub field: String,
    /// What is wrong, as the rest of a sentence that begins with the field.
    pub problem: Cow<'static, str>,
}

impl Malformed {
    /// The field has this problem.
    pub fn new(field: &str, problem: impl Into<Cow<'static, str>>) -> Self {
        Self { field: field.to_owned(), problem: problem.into() }
    }

    /// The field must be there and is not.
    pub(crate) fn missing(field: &str) -> Self {
        Self::new(field, "is missing")
    }

    /// The same problem seen from the message around it, in whose field `outer` it is.
    pub(crate) fn inside(mut self, outer: &str) -> Self {
        if !self.field.is_empty() {
            self.field.insert(0, '.');
        }
        self.field.insert_str(0, outer);
        self
    }
}

impl From<DecodeError> for Malformed {
    fn from(error: DecodeError) -> Self {
        let problem = match error.problem() {
            Problem::UnknownTag { tag, .. } => format!("has the unknown tag {tag}").into(),
            Problem::UnknownCase => "has no known case set".into(),
            Problem::UnknownValue { enumeration, value } => {
                format!("has the value {value}, which {enumeration} does not have").into()
            }
            Problem::Damaged(reason) => format!("cannot be decoded: {reason}").into(),
            Problem::Missing => "is missing".into(),
            Problem::Invalid(what) => format!("is {what}").into(),
        };
        Self { field: error.place().to_owned(), problem }
    }
}

/// Reads a field that is a word of history.
pub(crate) fn word<T: Wire<W>, W>(field: &str, wire: W) -> Result<T, Malformed> {
    T::from_wire(wire).map_err(|error| Malformed::from(error).inside(field))
}

/// Reads a field that is a message of the API and must be there.
pub(crate) fn part<T, W>(field: &str, wire: Option<W>) -> Result<T, Malformed>
where
    T: TryFrom<W, Error = Malformed>,
{
    let wire = wire.ok_or_else(|| Malformed::missing(field))?;
    T::try_from(wire).map_err(|error| error.inside(field))
}

/// Reads a field that is a list of messages of the API.
pub(crate) fn parts<T, W>(field: &str, wire: Vec<W>) -> Result<Vec<T>, Malformed>
where
    T: TryFrom<W, Error = Malformed>,
{
    let read = |(index, wire)| {
        T::try_from(wire).map_err(|error| error.inside(&format!("{field}[{index}]")))
    };
    wire.into_iter().enumerate().map(read).collect()
}

/// Both directions of an enum without data whose cases have the same names on the wire. The case
/// after `else` is what an absent value means.
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
            type Error = $crate::Malformed;

            fn try_from(wire: $crate::generated::$name) -> Result<Self, Self::Error> {
                match wire {
                    $crate::generated::$name::Unspecified => {
                        $(return Ok(Self::$default);)?
                        #[allow(unreachable_code, reason = "an absent value may have a meaning")]
                        Err($crate::Malformed::missing(""))
                    }
                    $($crate::generated::$name::$case => Ok(Self::$case),)*
                }
            }
        }
    };
}

/// Reads an enumeration.
pub(crate) fn case<T, W>(field: &str, number: i32) -> Result<T, Malformed>
where
    W: TryFrom<i32>,
    T: TryFrom<W, Error = Malformed>,
{
    let wire = W::try_from(number)
        .map_err(|_| Malformed::new(field, format!("has the unknown value {number}")))?;
    T::try_from(wire).map_err(|error| error.inside(field))
}

pub(crate) use enumeration;
