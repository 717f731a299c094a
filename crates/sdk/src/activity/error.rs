//! The error of an activity that says more than a message: whether and when to retry, and details
//! for the workflow.

use std::time::Duration;

use abide_core::{
    failure::{Failure, FailureKind},
    payload::Payloads,
};

use crate::{
    payload::{self, PayloadError, PayloadValue},
    returned::{BoxError, type_name_of},
    typed::{self, TypedError},
};

/// An error with retry instructions. An activity may return any other error too; it is then retried
/// as the policy says. The instructions also apply when this error is the source of another one,
/// except through `#[error(transparent)]`, which hides it.
#[derive(Debug, Default, thiserror::Error)]
#[error("{message}")]
pub struct ActivityError {
    message: String,
    error_type: String,
    non_retryable: bool,
    retry_after: Option<Duration>,
    details: Payloads,
    cancelled: bool,
    later: bool,
    source: Option<BoxError>,
}

/// An error that keeps its type and value: the workflow gets it back from
/// [`Error::cause`](crate::Error::cause).
impl<E: TypedError> From<E> for ActivityError {
    fn from(error: E) -> Self {
        Self {
            error_type: type_name_of::<E>().into(),
            details: typed::details(&error),
            ..Self::from_source(error)
        }
    }
}

impl From<PayloadError> for ActivityError {
    fn from(error: PayloadError) -> Self {
        Self::from_source(error)
    }
}

impl ActivityError {
    /// An error that is retried as the policy says.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// An error with the message and the causes of another.
    pub fn from_source(source: impl Into<BoxError>) -> Self {
        let source = source.into();
        Self { message: source.to_string(), source: Some(source), ..Self::default() }
    }

    /// The activity stopped because it was asked to.
    pub fn cancelled() -> Self {
        Self { message: "cancelled".into(), cancelled: true, ..Self::default() }
    }

    /// Not a failure: another process completes the activity, by the token of its
    /// [`ActivityContext`](super::ActivityContext::token) or by its id. The attempt stays open
    /// without its worker; its timeouts still apply.
    pub fn completed_later() -> Self {
        let message = "the activity is completed from outside its worker".into();
        Self { message, later: true, ..Self::default() }
    }

    /// Prevents retries, whatever the policy says.
    #[must_use]
    pub fn non_retryable(mut self) -> Self {
        self.non_retryable = true;
        self
    }

    /// Retries after this time instead of the policy's interval.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// The name by which programs recognise the error, and by which a policy excludes it from
    /// retries.
    #[must_use]
    pub fn error_type(mut self, name: impl Into<String>) -> Self {
        self.error_type = name.into();
        self
    }

    /// Attaches data for the workflow. If it cannot be encoded, the message says so.
    #[must_use]
    pub fn details<T: PayloadValue>(mut self, details: &T) -> Self {
        match payload::encode(details).map_err(|error| error.of("details of an error")) {
            Ok(details) => self.details = details,
            Err(error) => self.message = format!("{}; {error}", self.message),
        }
        self
    }

    /// How the attempt ends.
    pub(super) const fn ending(&self) -> ErrorMeaning<'_> {
        match (self.cancelled, self.later) {
            (true, _) => ErrorMeaning::Cancelled(&self.details),
            (false, true) => ErrorMeaning::Later,
            (false, false) => ErrorMeaning::Failed,
        }
    }

    /// The failure, without its causes.
    pub(crate) fn to_failure(&self) -> Failure {
        Failure {
            message: self.message.clone(),
            error_type: self.error_type.clone(),
            kind: if self.cancelled { FailureKind::Cancelled } else { FailureKind::Application },
            non_retryable: self.non_retryable,
            next_retry_delay: self.retry_after,
            details: self.details.clone(),
            ..Failure::default()
        }
    }
}

/// How an attempt ends that returns this error.
pub(super) enum ErrorMeaning<'a> {
    Failed,
    /// It stopped because it was asked to; the details are for the workflow.
    Cancelled(&'a Payloads),
    /// Another process completes it.
    Later,
}
