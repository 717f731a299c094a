//! Errors as user code returns them, of any type, and the failure that history keeps of them.

use std::{any::type_name, error::Error as StdError};

use abide_core::failure::Failure;

use crate::{activity::ActivityError, error::Error};

/// Sources of an error that are kept: well below the depth at which a failure is refused.
const CAUSES_MAX: usize = 20;

/// Any error that can leave an activity, a run or an update.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// An error that left user code, with the name of its type.
#[derive(Debug)]
pub struct Raised {
    error: BoxError,
    error_type: &'static str,
}

impl Raised {
    /// Takes the error as it was returned.
    pub fn new<E: Into<BoxError> + 'static>(error: E) -> Self {
        Self { error: boxed(error), error_type: short_name(type_name::<E>()) }
    }

    /// The error as one of our own, if it is one.
    pub(crate) fn downcast<T: StdError + 'static>(self) -> Result<Box<T>, Self> {
        let error_type = self.error_type;
        self.error.downcast().map_err(|error| Self { error, error_type })
    }

    /// What history keeps: the message and type of the error, and its sources as causes.
    pub fn into_failure(self) -> Failure {
        let raised = match self.downcast::<Error>() {
            Ok(error) => return error.into_failure(),
            Err(raised) => raised,
        };
        match raised.downcast::<ActivityError>() {
            Ok(error) => error.into_failure(),
            Err(Self { error, error_type }) => Failure {
                message: error.to_string(),
                error_type: error_type.into(),
                cause: cause_of(error.source()),
                ..Failure::default()
            },
        }
    }
}

/// The sources of an error as nested failures.
pub(crate) fn cause_of(source: Option<&(dyn StdError + 'static)>) -> Option<Box<Failure>> {
    let sources = std::iter::successors(source, |error| (*error).source());
    let messages: Vec<_> = sources.take(CAUSES_MAX).map(ToString::to_string).collect();
    messages.into_iter().rev().fold(None, |cause, message| {
        Some(Box::new(Failure { message, cause, ..Failure::default() }))
    })
}

/// The last segment of a type's path, which stays the same when the type moves. Plain text has no type.
fn short_name(path: &'static str) -> &'static str {
    let end = path.find('<').unwrap_or(path.len());
    match path[..end].rsplit("::").next() {
        None | Some("String" | "&str" | "Box") => "",
        Some(name) => name,
    }
}

#[cfg(not(feature = "anyhow"))]
fn boxed<E: Into<BoxError> + 'static>(error: E) -> BoxError {
    error.into()
}

/// An `anyhow::Error` is unpacked: boxed as it is, it would hide the error that it carries.
#[cfg(feature = "anyhow")]
fn boxed<E: Into<BoxError> + 'static>(error: E) -> BoxError {
    let mut error = Some(error);
    let any: &mut dyn std::any::Any = &mut error;
    if let Some(error) = any.downcast_mut::<Option<anyhow::Error>>().and_then(Option::take) {
        return error.reallocate_into_boxed_dyn_error_without_backtrace();
    }
    error.map_or_else(|| "an error that was already taken".into(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the order is void")]
    struct VoidOrder(#[source] std::num::ParseIntError);

    fn void_order() -> VoidOrder {
        VoidOrder("x".parse::<u8>().unwrap_err())
    }

    #[test]
    fn a_failure_has_message_type_and_causes() {
        let failure = Raised::new(void_order()).into_failure();
        assert_eq!(failure.message, "the order is void");
        assert_eq!(failure.error_type, "VoidOrder");
        assert_eq!(failure.cause.unwrap().message, "invalid digit found in string");
    }

    #[test]
    fn plain_text_is_an_error_without_a_type() {
        let failure = Raised::new("no luck".to_owned()).into_failure();
        assert_eq!((failure.message.as_str(), failure.error_type.as_str()), ("no luck", ""));
    }

    #[cfg(feature = "anyhow")]
    #[test]
    fn anyhow_hides_none_of_our_errors() {
        let failure = Raised::new(anyhow::Error::from(Error::Cancelled)).into_failure();
        assert_eq!(failure.kind, abide_core::failure::FailureKind::Cancelled);
        let failure = Raised::new(anyhow::Error::from(void_order())).into_failure();
        assert_eq!(failure.message, "the order is void");
    }
}
