//! Errors as workflow code sees them.

use abide_core::{
    failure::{self, Causes},
    ids::{ActivityId, WorkflowId},
    payload::Payloads,
};

use crate::{
    context::NextRun,
    failure::{DeliveryFailure, Failure, FailureKind, RetryState},
    payload::PayloadError,
    returned::{BoxError, ReturnedError},
    saga::SagaFailure,
    typed::TypedError,
};

/// How many causes are kept beneath a failed step: a failure that passed through many generations
/// of children stays well below the depth at which it is refused.
const CAUSES_MAX: usize = 50;

/// The result of workflow code.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a step of a workflow did not succeed. Returned by the run, it fails the run; after a cancel
/// request, an error that [`is_cancelled`](Error::is_cancelled) cancels it. The same holds if it is
/// the source of another error, except through `#[error(transparent)]`, which hides it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An activity failed, and no retry follows.
    #[error(transparent)]
    Activity(Box<ActivityFailure>),
    /// A child failed, or could not be started.
    #[error(transparent)]
    Child(Box<ChildFailure>),
    /// A signal or cancel request could not be delivered to another workflow.
    #[error(transparent)]
    External(Box<ExternalFailure>),
    /// This step was cancelled while it waited: by a request to the run or its scope, or alone; or
    /// its scope was cancelled before it started.
    #[error("cancelled")]
    Cancelled,
    /// Workflow code gave up; made by [`Error::new`] and [`Error::from_source`].
    #[error("{0}")]
    Failed(Box<Failure>),
    /// A saga failed, and not all of its steps could be undone.
    #[error(transparent)]
    Saga(Box<SagaFailure>),
    /// A value could not be encoded, or a payload could not be decoded.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// Not a failure: the run continues in a new one. Made by
    /// [`Context::continue_as_new`](crate::Context::continue_as_new) and
    /// [`Context::next_run`](crate::Context::next_run), to be returned by the run.
    #[error("the run continues as new")]
    ContinueAsNew(Box<NextRun>),
}

/// An activity that failed, with no retry to follow.
#[derive(Clone, Debug, thiserror::Error)]
#[error("activity {activity_type} failed: {failure}")]
#[non_exhaustive]
pub struct ActivityFailure {
    /// The registered name of the activity.
    pub activity_type: String,
    /// The id of the activity within the run.
    pub activity: ActivityId,
    /// The failure of the last attempt.
    pub failure: Failure,
    /// Why it was not retried.
    pub retry_state: RetryState,
}

impl ActivityFailure {
    /// The error of this type that the activity failed with; see [`Error::cause`].
    pub fn cause<T: TypedError>(&self) -> Option<T> {
        self.failure.cause()
    }
}

/// A child that failed, or could not be started.
#[derive(Clone, Debug, thiserror::Error)]
#[error("child {workflow} of type {workflow_type} failed: {failure}")]
#[non_exhaustive]
pub struct ChildFailure {
    /// The type name of the child.
    pub workflow_type: String,
    /// The child's workflow id.
    pub workflow: WorkflowId,
    /// Why it failed or could not be started.
    pub failure: Failure,
    /// Why it was not retried, by the engine or by the run itself.
    pub retry_state: RetryState,
    /// Set if the child was never started.
    pub not_started: Option<DeliveryFailure>,
}

impl ChildFailure {
    /// The error of this type that the child, or one of its own steps, failed with; see
    /// [`Error::cause`].
    pub fn cause<T: TypedError>(&self) -> Option<T> {
        self.failure.cause()
    }
}

/// A signal or cancel request that did not reach another workflow.
#[derive(Clone, Debug, thiserror::Error)]
#[error("workflow {workflow} was not reached: {cause}")]
#[non_exhaustive]
pub struct ExternalFailure {
    /// The id of the other workflow.
    pub workflow: WorkflowId,
    /// Why it was not reached.
    pub cause: DeliveryFailure,
}

/// Fails with an error that keeps its type and value: clients and parents get it back from `cause()`.
impl<E: TypedError> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Failed(Box::new(ReturnedError::typed(error).into_failure().into()))
    }
}

impl Error {
    /// Fails with this message.
    pub fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Failed(Box::new(failure::Failure { message, ..failure::Failure::default() }.into()))
    }

    /// Fails with an error of any type as the cause.
    pub fn from_source<E: Into<BoxError> + 'static>(error: E) -> Self {
        let returned = match ReturnedError::new(error).downcast::<Self>() {
            Ok(error) => return *error,
            Err(returned) => returned,
        };
        match returned.find() {
            Some(error) if error.is_cancelled() => Self::Cancelled,
            Some(Self::ContinueAsNew(next)) => Self::ContinueAsNew(next.clone()),
            _ => Self::Failed(Box::new(returned.into_failure().into())),
        }
    }

    /// The error of this type that the step failed with: of an activity, a child, or whatever either
    /// failed with in turn; the outermost, if there are several. None if the failure has no error of
    /// this type, or one whose value this version of the type cannot decode.
    ///
    /// ```
    /// # use abide_sdk::{ActivityDef, Context, Result};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Debug, thiserror::Error, Serialize, Deserialize)]
    /// #[error("the card ending in {last4} has expired")]
    /// struct CardExpired {
    ///     last4: String,
    /// }
    ///
    /// # async fn example<W>(ctx: &Context<W>, charge: ActivityDef<(), (u32,), ()>) -> Result<String> {
    /// match ctx.activity(charge, 100).await {
    ///     Ok(()) => Ok("paid".to_owned()),
    ///     Err(error) if let Some(CardExpired { last4 }) = error.cause() => Ok(format!("not by {last4}")),
    ///     Err(error) => Err(error),
    /// }
    /// # }
    /// ```
    pub fn cause<T: TypedError>(&self) -> Option<T> {
        match self {
            Self::Activity(activity) => activity.cause(),
            Self::Child(child) => child.cause(),
            Self::Failed(failure) => failure.cause(),
            Self::Saga(saga) => saga.cause.cause(),
            Self::External(_) | Self::Cancelled | Self::Payload(_) | Self::ContinueAsNew(_) => None,
        }
    }

    /// Whether the wait itself was cancelled, or, where its end was waited for, the activity or the
    /// child. Returned by a run that was asked to cancel itself, such an error cancels the run.
    pub fn is_cancelled(&self) -> bool {
        match self {
            Self::Cancelled => true,
            Self::Activity(activity) => activity.failure.kind() == FailureKind::Cancelled,
            Self::Child(child) => child.failure.kind() == FailureKind::Cancelled,
            _ => false,
        }
    }

    /// Whether an activity or a child timed out. It may or may not have taken effect.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Activity(activity) => activity.failure.is_timeout(),
            Self::Child(child) => child.failure.is_timeout(),
            _ => false,
        }
    }

    /// The details of the cancelled activity or child.
    pub(crate) fn cancel_details(&self) -> Payloads {
        match self {
            Self::Activity(activity) => activity.failure.details().to_vec(),
            Self::Child(child) => child.failure.details().to_vec(),
            _ => Payloads::new(),
        }
    }

    /// The failure that history records.
    pub(crate) fn to_failure(&self) -> failure::Failure {
        use failure::FailureKind as Kind;
        let message = self.to_string();
        let wrapped = |kind, causes| failure::Failure {
            causes,
            ..failure::Failure::server(kind, message.clone())
        };
        let because_of = |failure: &Failure| {
            failure::Failure::from(failure.clone()).shortened(CAUSES_MAX).into()
        };
        let none = Causes::default();
        match self {
            Self::Activity(activity) => wrapped(Kind::Activity, because_of(&activity.failure)),
            Self::Child(child) => wrapped(Kind::Child, because_of(&child.failure)),
            Self::External(_) => wrapped(Kind::Server, none),
            Self::Cancelled => wrapped(Kind::Cancelled, none),
            Self::Failed(failure) => (**failure).clone().into(),
            Self::Saga(saga) => saga.to_failure(),
            Self::Payload(_) | Self::ContinueAsNew(_) => wrapped(Kind::Application, none),
        }
    }
}

#[cfg(test)]
mod tests {
    use abide_core::failure::TimeoutKind;

    use super::*;

    #[test]
    fn a_timeout_is_told_from_other_failures() {
        let failed = |recorded: failure::Failure| {
            Error::Activity(Box::new(ActivityFailure {
                activity_type: "book".into(),
                activity: "activity-1".into(),
                failure: recorded.into(),
                retry_state: RetryState::Timeout,
            }))
        };
        assert!(failed(failure::Failure::timeout(TimeoutKind::Heartbeat)).is_timeout());
        assert!(!failed(failure::Failure::default()).is_timeout());
        assert!(!Error::Cancelled.is_timeout());
    }
}
