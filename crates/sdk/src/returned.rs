//! Errors as user code returns them, of any type, and the failure that history records for them.

use std::{
    any::{Any, type_name},
    error::Error as StdError,
};

use abide_core::{
    failure::{Failure, FailureKind},
    payload::Payloads,
};

use crate::{
    activity::ActivityError,
    approval::Refusal,
    error::Error,
    typed::{self, TypedError},
};

/// How many sources of an error are kept: well below the depth at which a failure is refused.
const CAUSES_MAX: usize = 20;

/// Any error that an activity, a run or an update can return.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// An error that user code returned, with the name of its type.
///
/// Errors of this crate keep their meaning as sources of others: through `#[from]` and `#[source]`,
/// and through the context of `anyhow`. An `#[error(transparent)]` wrapper hides the error that it
/// holds.
#[derive(Debug)]
pub struct ReturnedError {
    error: BoxError,
    error_type: &'static str,
    /// The error's value, if it can travel.
    details: Payloads,
}

impl ReturnedError {
    /// Wraps an error of any type, which keeps its message and the name of its type. One that is
    /// wrapped already stays as it is.
    pub fn new<E: Into<BoxError> + 'static>(error: E) -> Self {
        let mut error = Some(error);
        let any: &mut dyn Any = &mut error;
        if let Some(wrapped) = any.downcast_mut::<Option<Self>>().and_then(Option::take) {
            return wrapped;
        }
        Self { error: boxed(error), error_type: type_name_of::<E>(), details: Payloads::new() }
    }

    /// Wraps an error that keeps its value too.
    pub fn typed<E: TypedError>(error: E) -> Self {
        let details = typed::details(&error);
        Self { error: Box::new(error), error_type: type_name_of::<E>(), details }
    }

    /// The error itself as one of this crate's types, if it is one.
    pub(crate) fn downcast<T: StdError + 'static>(self) -> Result<Box<T>, Self> {
        let Self { error, error_type, details } = self;
        error.downcast().map_err(|error| Self { error, error_type, details })
    }

    /// The first of the error and its sources that is a `T`: an error keeps its meaning as the
    /// source of a wrapper.
    pub(crate) fn find<T: StdError + 'static>(&self) -> Option<&T> {
        self.chain().find_map(as_a)
    }

    /// The message of the error.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn message(&self) -> String {
        self.error.to_string()
    }

    /// The failure that history records: the message and type of the error, and its sources as
    /// causes. The retry instructions of this crate's errors among the sources apply to the whole.
    #[doc(hidden)]
    pub fn into_failure(self) -> Failure {
        let failure = failure_of(&*self.error, CAUSES_MAX);
        if own_failure(&*self.error).is_some() {
            return failure;
        }
        let told = self.chain().find_map(own_failure).unwrap_or_default();
        let named = !told.error_type.is_empty();
        let cancelled = told.kind == FailureKind::Cancelled;
        Failure {
            error_type: if named { told.error_type } else { self.error_type.into() },
            kind: if cancelled { told.kind } else { failure.kind },
            non_retryable: told.non_retryable,
            next_retry_delay: told.next_retry_delay,
            details: if told.details.is_empty() && !named { self.details } else { told.details },
            ..failure
        }
    }

    fn chain(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        let first: &(dyn StdError + 'static) = &*self.error;
        std::iter::successors(Some(first), |error| (*error).source()).take(CAUSES_MAX)
    }
}

/// An error as one of this crate's types, if it is one.
fn as_a<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    error.downcast_ref::<T>().or_else(|| error.downcast_ref::<Box<T>>().map(|boxed| &**boxed))
}

/// The failure of one of this crate's errors, if it is one.
fn own_failure(error: &(dyn StdError + 'static)) -> Option<Failure> {
    let of_activity = || as_a::<ActivityError>(error).map(ActivityError::to_failure);
    let of_refusal = || as_a::<Refusal>(error).map(Refusal::to_failure);
    as_a::<Error>(error).map(Error::to_failure).or_else(of_activity).or_else(of_refusal)
}

/// An error with its sources as causes, up to the bound.
fn failure_of(error: &(dyn StdError + 'static), causes: usize) -> Failure {
    let failure = own_failure(error)
        .unwrap_or_else(|| Failure { message: error.to_string(), ..Failure::default() });
    if !failure.causes.is_empty() {
        return failure;
    }
    let beneath = match as_a::<ActivityError>(error) {
        // It repeats the message of its source, which is therefore skipped.
        Some(error) => error.source().and_then(StdError::source),
        None => error.source(),
    };
    let cause = causes.checked_sub(1).zip(beneath);
    let cause = cause.map(|(left, error)| failure_of(error, left));
    Failure { causes: cause.into_iter().collect(), ..failure }
}

/// The name under which errors of this type are known in failures.
pub(crate) fn type_name_of<E>() -> &'static str {
    short_name(type_name::<E>())
}

/// The last segment of a type's path, which stays the same when the type moves. Many types are called
/// `Error`, so such a one has its whole path. Plain text has no type, and neither has an error that
/// hides its own.
fn short_name(path: &'static str) -> &'static str {
    let end = path.find('<').unwrap_or(path.len());
    match path[..end].rsplit("::").next() {
        None | Some("String" | "&str" | "Box") => "",
        Some("Error") if path == "anyhow::Error" => "",
        Some("Error") => &path[..end],
        Some(name) => name,
    }
}

impl From<ReturnedError> for BoxError {
    fn from(returned: ReturnedError) -> Self {
        returned.error
    }
}

#[cfg(not(feature = "anyhow"))]
fn boxed<E: Into<BoxError> + 'static>(error: Option<E>) -> BoxError {
    error.map_or_else(|| "an error that was already taken".into(), Into::into)
}

/// An `anyhow::Error` is unpacked: boxed as it is, it would hide the error that it carries.
#[cfg(feature = "anyhow")]
fn boxed<E: Into<BoxError> + 'static>(mut error: Option<E>) -> BoxError {
    let any: &mut dyn Any = &mut error;
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
        let failure = ReturnedError::new(void_order()).into_failure();
        assert_eq!(failure.message, "the order is void");
        assert_eq!(failure.error_type, "VoidOrder");
        assert_eq!(failure.causes[0].message, "invalid digit found in string");
    }

    /// Such a name would be that of any other crate's error too.
    #[test]
    fn a_type_that_is_called_error_has_its_whole_path() {
        let failure = ReturnedError::new(std::fmt::Error).into_failure();
        assert_eq!(failure.error_type, "core::fmt::Error");
        assert_eq!(short_name("anyhow::Error"), "");
        assert_eq!(short_name("shop::Error<u8>"), "shop::Error");
    }

    #[test]
    fn an_error_is_wrapped_once() {
        let wrapped = ReturnedError::new(ReturnedError::new(void_order()));
        assert_eq!(wrapped.into_failure().error_type, "VoidOrder");
    }

    #[test]
    fn plain_text_is_an_error_without_a_type() {
        let failure = ReturnedError::new("no luck".to_owned()).into_failure();
        assert_eq!((failure.message.as_str(), failure.error_type.as_str()), ("no luck", ""));
    }

    #[cfg(feature = "anyhow")]
    #[test]
    fn anyhow_hides_none_of_our_errors() {
        let failure = ReturnedError::new(anyhow::Error::from(Error::Cancelled)).into_failure();
        assert_eq!(failure.kind, FailureKind::Cancelled);
        let failure = ReturnedError::new(anyhow::Error::from(void_order())).into_failure();
        assert_eq!(failure.message, "the order is void");
    }

    #[cfg(feature = "anyhow")]
    #[test]
    fn the_context_of_anyhow_hides_none_of_our_errors() {
        use anyhow::Context as _;
        let error = ActivityError::new("no such card").non_retryable();
        let error = Err::<(), _>(error).context("charging").context("buying").unwrap_err();
        let failure = ReturnedError::new(error).into_failure();
        assert_eq!((failure.message.as_str(), failure.non_retryable), ("buying", true));
        let cancelled = anyhow::Error::from(Error::Cancelled).context("sleeping");
        assert!(matches!(ReturnedError::new(cancelled).find(), Some(Error::Cancelled)));
    }
}
