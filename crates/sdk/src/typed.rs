//! Errors that keep their type: an error that serde can serialize travels as the details of its
//! failure, under the name of its type, and the receiver decodes it.
//!
//! The name is that of the type without its path, so that a type may move. Details that do not fit
//! the receiver's type, such as those of an older version of it, make no error: there is then no
//! typed cause, and message and type name are still there.

use std::{error::Error as StdError, marker::PhantomData};

use abide_core::{
    failure::Failure,
    payload::{self, Payloads},
};

use crate::{
    payload::PayloadValue,
    returned::{BoxError, ReturnedError, type_name_of},
};

/// The largest error that travels: more belongs in a store of its own. A larger one keeps its message
/// and its type's name.
const DETAILS_MAX: usize = 64 * 1024;

/// An error that keeps its type on the way to the code that handles it: every error that serde can
/// serialize and deserialize.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel as an error: serde cannot serialize it",
    // The only part that the compiler shows for `?`.
    label = "serde cannot serialize it: write `.map_err(Error::from_source)?`, or in an activity \
             `.map_err(ActivityError::from_source)?`, or return `anyhow::Result` from it",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it, or write \
            `.map_err(Error::from_source)?` in a workflow",
    note = "an activity may return any error: `anyhow::Result<T>`, `Result<T, Box<dyn Error + Send + Sync>>` or \
            `std::io::Result<T>`"
)]
pub trait TypedError: StdError + PayloadValue + Send + Sync {}

// Not recommended, so that the compiler shows the notes above and not what serde lacks.
#[diagnostic::do_not_recommend]
impl<E: StdError + PayloadValue + Send + Sync> TypedError for E {}

/// The error as details of its failure; none if it cannot be encoded or is too large.
pub(crate) fn details<E: TypedError>(error: &E) -> Payloads {
    let encoded = crate::payload::encode(error).unwrap_or_default();
    if payload::size(&encoded).bytes > DETAILS_MAX { Payloads::new() } else { encoded }
}

/// The first of a failure and its causes that is a `T`.
pub(crate) fn find<'a, T: TypedError>(chain: impl Iterator<Item = &'a Failure>) -> Option<T> {
    let name = type_name_of::<T>();
    let same = chain.filter(|cause| cause.error_type == name);
    same.filter_map(|cause| crate::payload::decode(&cause.details).ok()).next()
}

/// The type of an error that user code returned, by which the generated code chooses how to wrap it:
/// `(&Kind::of(&error)).wrap()` is [`Typed`] for errors that can travel, else [`Plain`].
///
/// The receiver `&Kind<E>` matches [`TypedKind`] without a further reference, and [`PlainKind`] only
/// with one, so that the compiler prefers the first where both apply.
#[derive(Debug)]
pub struct Kind<E>(PhantomData<fn() -> E>);

impl<E> Kind<E> {
    /// The kind of this error.
    pub const fn of(_: &E) -> Self {
        Self(PhantomData)
    }
}

/// Errors that can travel.
pub trait TypedKind {
    /// How to wrap the error.
    fn wrap(&self) -> Typed {
        Typed
    }
}

impl<E: TypedError> TypedKind for Kind<E> {}

/// All errors.
pub trait PlainKind {
    /// How to wrap the error.
    fn wrap(&self) -> Plain {
        Plain
    }
}

impl<E> PlainKind for &Kind<E> {}

/// Wraps an error with its value.
#[derive(Clone, Copy, Debug)]
pub struct Typed;

impl Typed {
    /// The error as it was returned.
    pub fn error<E: TypedError>(self, error: E) -> ReturnedError {
        ReturnedError::typed(error)
    }
}

/// Wraps an error with the name of its type.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl Plain {
    /// The error as it was returned.
    pub fn error<E: Into<BoxError> + 'static>(self, error: E) -> ReturnedError {
        ReturnedError::new(error)
    }
}

/// Wraps an error that user code returned: with its value, if it can travel.
#[doc(hidden)]
#[macro_export]
macro_rules! __returned {
    ($error:ident) => {{
        #[allow(unused_imports, reason = "one of the two applies")]
        use $crate::__private::{PlainKind as _, TypedKind as _};
        (&$crate::__private::Kind::of(&$error)).wrap().error($error)
    }};
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::{Error, activity::ActivityError};

    #[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
    #[error("the card ending in {last4} has expired")]
    struct CardExpired {
        last4: String,
    }

    #[derive(Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
    #[error("there is no such order")]
    struct NoSuchOrder;

    #[derive(Debug, thiserror::Error)]
    #[error("the printer jams")]
    struct Jam;

    fn expired() -> CardExpired {
        CardExpired { last4: "4242".into() }
    }

    fn failure<E>(error: E, wrap: impl FnOnce(E) -> ReturnedError) -> Failure {
        wrap(error).into_failure()
    }

    #[test]
    fn an_error_that_serde_can_serialize_keeps_its_value() {
        let failure = failure(expired(), |error| __returned!(error));
        assert_eq!((&*failure.error_type, failure.details.len()), ("CardExpired", 1));
        assert_eq!(find::<CardExpired>(failure.chain()), Some(expired()));
        assert_eq!(find::<NoSuchOrder>(failure.chain()), None);
    }

    #[test]
    fn other_errors_keep_their_type_name_and_message() {
        let jam = failure(Jam, |error| __returned!(error));
        assert_eq!((&*jam.error_type, &*jam.message), ("Jam", "the printer jams"));
        assert!(jam.details.is_empty());
        let text = failure("no luck".to_owned(), |error| __returned!(error));
        assert_eq!((&*text.error_type, &*text.message), ("", "no luck"));
        let boxed = failure(BoxError::from(expired()), |error| __returned!(error));
        assert_eq!((&*boxed.error_type, boxed.details.len()), ("", 0));
    }

    #[test]
    fn a_value_of_another_version_is_no_cause() {
        let old = Failure { error_type: "CardExpired".into(), ..Failure::default() };
        assert_eq!(find::<CardExpired>(old.chain()), None, "it has no details");
        let other = crate::payload::encode(&[1, 2, 3]).unwrap();
        assert_eq!(find::<CardExpired>(Failure { details: other, ..old }.chain()), None);
        let unit = Failure { error_type: "NoSuchOrder".into(), ..Failure::default() };
        assert_eq!(find::<NoSuchOrder>(unit.chain()), Some(NoSuchOrder), "it needs no details");
    }

    #[test]
    fn a_cause_is_found_beneath_others() {
        let cause = failure(expired(), |error| __returned!(error));
        let wrapped = Failure { causes: cause.into(), ..Failure::default() };
        assert_eq!(find::<CardExpired>(wrapped.chain()), Some(expired()));
    }

    #[test]
    fn a_value_that_is_too_large_stays_behind() {
        let large = CardExpired { last4: "4".repeat(DETAILS_MAX) };
        let failure = failure(large, |error| __returned!(error));
        assert_eq!((&*failure.error_type, failure.details.len()), ("CardExpired", 0));
    }

    #[test]
    fn errors_of_this_crate_are_made_of_typed_ones() {
        let error = ActivityError::from(expired()).non_retryable();
        let failure = failure(error, |error| __returned!(error));
        assert_eq!(find::<CardExpired>(failure.chain()), Some(expired()));
        assert!(failure.non_retryable && failure.causes.is_empty());
        let error = Error::from(expired());
        assert_eq!(error.cause(), Some(expired()));
        assert_eq!(error.to_string(), "the card ending in 4242 has expired");
    }
}
