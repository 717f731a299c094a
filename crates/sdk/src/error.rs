//! What can go wrong from the view of workflow code.

use abide_core::{
    event::DeliveryFailure,
    failure::{Causes, Failure, FailureKind},
    ids::{ActivityId, WorkflowId},
    payload::Payloads,
    retry::RetryState,
};

use crate::{
    context::NextRun,
    payload::PayloadError,
    raised::{BoxError, Raised},
    saga::SagaFailure,
};

/// Causes that are kept beneath a failed step: a failure that came up through many generations of
/// children stays well below the depth at which it is refused.
const CAUSES_MAX: usize = 50;

/// The result of workflow code.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a step of a workflow did not succeed. Returned by the run, it fails the run; one that
/// [`is_cancelled`](Error::is_cancelled) after a cancel request cancels it. As the source of another error it means the same, except through
/// `#[error(transparent)]`, which hides it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An activity failed for good.
    #[error(transparent)]
    Activity(Box<ActivityFailure>),
    /// A child failed, or could not be started.
    #[error(transparent)]
    Child(Box<ChildFailure>),
    /// Another workflow could not be reached.
    #[error(transparent)]
    External(Box<ExternalFailure>),
    /// This step was cancelled while it waited: by a request to the run or its scope, or alone; or its
    /// scope was cancelled before it began.
    #[error("cancelled")]
    Cancelled,
    /// Workflow code gave up; made by [`Error::fail`] and [`Error::from_source`].
    #[error("{}", .0.message)]
    Failed(Box<Failure>),
    /// A saga failed, and not all of it could be undone.
    #[error(transparent)]
    Saga(Box<SagaFailure>),
    /// Data could not be written or read.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// Not a failure: the run goes on in a new one. Made by
    /// [`Context::continue_as_new`](crate::Context::continue_as_new) and
    /// [`Context::next_run`](crate::Context::next_run), to be returned by the run.
    #[error("the run continues as new")]
    ContinueAsNew(Box<NextRun>),
}

/// An activity that failed for good.
#[derive(Clone, Debug, thiserror::Error)]
#[error("activity {activity_type} failed: {}", .failure.message)]
pub struct ActivityFailure {
    /// The activity's type.
    pub activity_type: String,
    /// Its id within the run.
    pub activity: ActivityId,
    /// Why it failed.
    pub failure: Failure,
    /// Why it was not tried again.
    pub retry_state: RetryState,
}

/// A child that failed, or could not be started.
#[derive(Clone, Debug, thiserror::Error)]
#[error("child {workflow} of type {workflow_type} failed: {}", .failure.message)]
pub struct ChildFailure {
    /// The child's type.
    pub workflow_type: String,
    /// The child's workflow id.
    pub workflow: WorkflowId,
    /// Why it failed.
    pub failure: Failure,
    /// Why it was not tried again, by the engine or by the run itself.
    pub retry_state: RetryState,
    /// Set if the child was never started.
    pub not_started: Option<DeliveryFailure>,
}

/// A signal or cancel request that did not reach another workflow.
#[derive(Clone, Debug, thiserror::Error)]
#[error("workflow {workflow} was not reached: {}", delivery_message(*.cause))]
pub struct ExternalFailure {
    /// The other workflow.
    pub workflow: WorkflowId,
    /// Why it was not reached.
    pub cause: DeliveryFailure,
}

impl Error {
    /// Workflow code gives up, and says why.
    pub fn fail(message: impl Into<String>) -> Self {
        Self::Failed(Box::new(Failure { message: message.into(), ..Failure::default() }))
    }

    /// Workflow code gives up because of an error of any type.
    pub fn from_source<E: Into<BoxError> + 'static>(error: E) -> Self {
        let raised = match Raised::new(error).downcast::<Self>() {
            Ok(error) => return *error,
            Err(raised) => raised,
        };
        match raised.find() {
            Some(error) if error.is_cancelled() => Self::Cancelled,
            Some(Self::ContinueAsNew(next)) => Self::ContinueAsNew(next.clone()),
            _ => Self::Failed(Box::new(raised.into_failure())),
        }
    }

    /// Something was cancelled: the wait itself, or, where its end was waited for, the activity or the
    /// child. Returned by a run that was asked to cancel itself, such an error cancels the run.
    pub fn is_cancelled(&self) -> bool {
        match self {
            Self::Cancelled => true,
            Self::Activity(activity) => activity.failure.kind == FailureKind::Cancelled,
            Self::Child(child) => child.failure.kind == FailureKind::Cancelled,
            _ => false,
        }
    }

    /// The time of an activity or of a child was up. Whether it took effect is not known.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Activity(activity) => activity.failure.is_timeout(),
            Self::Child(child) => child.failure.is_timeout(),
            _ => false,
        }
    }

    /// What the activity or child that was cancelled gave along.
    pub(crate) fn cancel_details(&self) -> Payloads {
        match self {
            Self::Activity(activity) => activity.failure.details.clone(),
            Self::Child(child) => child.failure.details.clone(),
            _ => Payloads::new(),
        }
    }

    /// What history keeps of the error.
    pub fn to_failure(&self) -> Failure {
        let message = self.to_string();
        let wrapped = |kind, causes| Failure { causes, ..Failure::server(kind, message.clone()) };
        let because_of = |failure: &Failure| failure.clone().shortened(CAUSES_MAX).into();
        let none = Causes::default();
        match self {
            Self::Activity(activity) => {
                wrapped(FailureKind::Activity, because_of(&activity.failure))
            }
            Self::Child(child) => wrapped(FailureKind::Child, because_of(&child.failure)),
            Self::External(_) => wrapped(FailureKind::Server, none),
            Self::Cancelled => wrapped(FailureKind::Cancelled, none),
            Self::Failed(failure) => (**failure).clone(),
            Self::Saga(saga) => saga.to_failure(),
            Self::Payload(_) | Self::ContinueAsNew(_) => wrapped(FailureKind::Application, none),
        }
    }
}

/// Why an effect did not reach its target, for people.
pub(crate) const fn delivery_message(cause: DeliveryFailure) -> &'static str {
    match cause {
        DeliveryFailure::NotFound => "there is no such workflow",
        DeliveryFailure::Closed => "it is closed",
        DeliveryFailure::AlreadyExists => "a workflow of that id exists already",
        DeliveryFailure::LimitExceeded => "it is at one of its limits",
        DeliveryFailure::NamespaceNotFound => "there is no such namespace",
        DeliveryFailure::NamespaceRefused => {
            "its namespace does not accept commands from this one; its configuration can allow it: \
             accepts_from"
        }
        DeliveryFailure::Refused => {
            "its server refused it, for a reason that is in the server's log"
        }
    }
}

#[cfg(test)]
mod tests {
    use abide_core::failure::TimeoutKind;

    use super::*;

    #[test]
    fn a_timeout_is_told_from_other_failures() {
        let failed = |failure| {
            Error::Activity(Box::new(ActivityFailure {
                activity_type: "book".into(),
                activity: "activity-1".into(),
                failure,
                retry_state: RetryState::Timeout,
            }))
        };
        assert!(failed(Failure::timeout(TimeoutKind::Heartbeat)).is_timeout());
        assert!(!failed(Failure::default()).is_timeout());
        assert!(!Error::Cancelled.is_timeout());
    }
}
