//! Why payloads could not be encoded or decoded, and what to do.

use abide_core::{limits::InvalidField, visible::visible};

use super::Codecs;

/// Payloads could not be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{codec}: {message}")]
pub struct CodecError {
    codec: String,
    problem: CodecProblem,
    message: String,
}

/// What kind of problem it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodecProblem {
    /// The payload needs a codec or a key that is not there. With it, the payload can be read.
    Missing,
    /// The codec could not do it now, because a store or a provider of keys does not answer.
    Unavailable,
    /// The codec refuses the payload: it is too large, damaged or forged.
    Refused,
}

impl CodecError {
    /// The payload needs something that the codec of this name does not have, such as a key. The
    /// message continues the name, and says what to do.
    pub fn missing(codec: &str, message: impl Into<String>) -> Self {
        Self::new(codec, CodecProblem::Missing, message.into())
    }

    /// The codec of this name could not do it now; another try may succeed.
    pub fn unavailable(codec: &str, message: impl Into<String>) -> Self {
        Self::new(codec, CodecProblem::Unavailable, message.into())
    }

    /// The codec of this name refuses the payload, now and later.
    pub fn refused(codec: &str, message: impl Into<String>) -> Self {
        Self::new(codec, CodecProblem::Refused, message.into())
    }

    /// What kind of problem it is.
    pub const fn problem(&self) -> CodecProblem {
        self.problem
    }

    /// The payload was not encrypted, and must be.
    pub(super) fn not_encrypted() -> Self {
        let message = "the payload is not encrypted, and this program requires that: its sender lacks \
                       the codecs, or it was replaced on the way";
        Self::refused("require_encryption", message)
    }

    /// Nothing here reads this encoding.
    pub(super) fn no_codec(encoding: &str, codecs: &Codecs) -> Self {
        let message = match codecs.is_empty() {
            true => "the payload is encoded, and this program has no codecs: configure those of \
                     the program that wrote it, with `with_codecs`"
                .to_owned(),
            false => format!(
                "the payload has an encoding that no codec of this program reads; it has \
                 {codecs:?}: add the codec that wrote it"
            ),
        };
        Self::missing(encoding, message)
    }

    /// The error as a problem of a field, for what refuses a value that can never be sent.
    pub(crate) fn as_invalid(&self) -> InvalidField {
        InvalidField::new("payload", self.to_string())
    }

    fn new(codec: &str, problem: CodecProblem, message: String) -> Self {
        Self { codec: visible(codec), problem, message }
    }
}
