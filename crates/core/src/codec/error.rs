//! Decoding errors: where, what is wrong, and what to do. A caller distinguishes two kinds: bytes
//! of a newer version, which an upgrade can read, and damage.

use prost::UnknownEnumValue;

/// Bytes that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {place}: {problem}")]
pub struct DecodeError {
    place: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A case or a field that this version does not know.
    #[error(
        "tag {tag} of {message} is unknown here: it was written by a newer version of Abide; \
         upgrade this one"
    )]
    UnknownTag {
        /// The message of the schema.
        message: &'static str,
        /// The unknown tag in it.
        tag: u32,
    },
    /// None of the known cases is set.
    #[error("no known case is set: it was written by a newer version of Abide; upgrade this one")]
    UnknownCase,
    /// A value of an enumeration that this version does not know.
    #[error(
        "value {value} of {enumeration} is unknown here: it was written by a newer version of \
         Abide; upgrade this one"
    )]
    UnknownValue {
        /// The enumeration of the schema.
        enumeration: &'static str,
        value: i32,
    },
    /// The bytes are not an encoding of the expected message.
    #[error("the bytes are damaged or cut off ({0}); restore them from a backup")]
    Damaged(prost::DecodeError),
    /// A part is missing that is always written.
    #[error("it is missing, although it is always written; restore the bytes from a backup")]
    Missing,
    /// A part has a value that is not allowed.
    #[error("it is {0}; restore the bytes from a backup")]
    Invalid(&'static str),
}

impl DecodeError {
    /// Location: the kind of row, then the path of fields.
    pub fn place(&self) -> &str {
        &self.place
    }

    #[doc(hidden)]
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Whether a newer version can read the bytes; otherwise they are damaged.
    pub const fn newer(&self) -> bool {
        matches!(
            self.problem,
            Problem::UnknownTag { .. } | Problem::UnknownCase | Problem::UnknownValue { .. }
        )
    }

    /// The same error, located in the field `outer` of the enclosing message.
    pub(super) fn inside(self, outer: &str) -> Self {
        self.prefixed(outer, ".")
    }

    /// The same error, located in this kind of row.
    pub(super) fn within(self, row: &str) -> Self {
        self.prefixed(row, ", ")
    }

    fn prefixed(mut self, outer: &str, separator: &str) -> Self {
        if !self.place.is_empty() {
            self.place.insert_str(0, separator);
        }
        self.place.insert_str(0, outer);
        self
    }
}

#[doc(hidden)]
impl From<Problem> for DecodeError {
    fn from(problem: Problem) -> Self {
        Self { place: String::new(), problem }
    }
}

impl From<prost::DecodeError> for DecodeError {
    fn from(error: prost::DecodeError) -> Self {
        Problem::Damaged(error).into()
    }
}

impl Problem {
    pub(super) fn unknown_value(enumeration: &'static str, error: &UnknownEnumValue) -> Self {
        Self::UnknownValue { enumeration, value: error.0 }
    }
}
