//! Failures as programs read them: why a run, an activity, a child or an update failed. They are views of what
//! history records, so that the form of the record can grow without a change for programs.

use std::{fmt, time::Duration};

use abide_core::{event, failure, payload::Payload, retry};

use crate::{
    activity::ActivityError,
    returned::ReturnedError,
    typed::{self, TypedError},
};

/// Why something failed: a message, the name of the error's type, and the failures that led to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    /// What is recorded, without the causes.
    own: failure::Failure,
    /// Outermost first. None of them has causes of its own.
    causes: Vec<Failure>,
}

impl Failure {
    /// The message for people.
    pub fn message(&self) -> &str {
        &self.own.message
    }

    /// The name of the error's type, by which programs recognise it; empty if it has none.
    pub fn error_type(&self) -> &str {
        &self.own.error_type
    }

    /// The stack trace, if the worker's language has sent one; else empty.
    pub fn stack(&self) -> &str {
        &self.own.stack
    }

    /// Which part of the system failed.
    pub fn kind(&self) -> FailureKind {
        self.own.kind.into()
    }

    /// Whether it is never retried, whatever the policy says.
    pub fn is_non_retryable(&self) -> bool {
        self.own.non_retryable
    }

    /// Whether it is a timeout of an attempt, an activity or a child.
    pub fn is_timeout(&self) -> bool {
        self.own.is_timeout()
    }

    /// The delay before the next attempt that the error asked for, instead of the policy's.
    pub fn next_retry_delay(&self) -> Option<Duration> {
        self.own.next_retry_delay
    }

    /// The encoded data that came with the error; see [`Failure::cause`] for an error with a type.
    pub fn details(&self) -> &[Payload] {
        &self.own.details
    }

    /// The failures that led to this one, outermost first; the last is the root cause.
    pub fn causes(&self) -> &[Self] {
        &self.causes
    }

    /// The failure, then its causes.
    pub fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.causes)
    }

    /// The error of this type among the failure and its causes; the outermost, if there are several. None
    /// if there is none, or if this version of the type cannot decode its value.
    pub fn cause<T: TypedError>(&self) -> Option<T> {
        typed::find(self.chain().map(|failure| &failure.own))
    }

    /// What is recorded, without the causes.
    pub(crate) const fn own(&self) -> &failure::Failure {
        &self.own
    }
}

impl From<failure::Failure> for Failure {
    fn from(recorded: failure::Failure) -> Self {
        let mut own = recorded;
        let causes = std::mem::take(&mut own.causes);
        Self { own, causes: causes.iter().cloned().map(Self::from).collect() }
    }
}

impl From<Failure> for failure::Failure {
    fn from(failure: Failure) -> Self {
        let causes = failure.causes.into_iter().map(Self::from).collect();
        Self { causes, ..failure.own }
    }
}

/// For interceptors that end an attempt in the place of its code.
impl From<ActivityError> for Failure {
    fn from(error: ActivityError) -> Self {
        ReturnedError::new(error).into_failure().into()
    }
}

/// Its message.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("message", &self.message())
            .field("error_type", &self.error_type())
            .field("kind", &self.kind())
            .field("causes", &self.causes)
            .finish_non_exhaustive()
    }
}

/// Which part of the system failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// User code.
    Application,
    /// Time ran out.
    Timeout(TimeoutKind),
    /// A requested cancellation took effect.
    Cancelled,
    /// An operator or a policy ended the run.
    Terminated,
    /// The engine itself.
    Server,
    /// An activity failed; the causes say why.
    Activity,
    /// A child failed; the causes say why.
    Child,
    /// The worker that held an at-most-once attempt was lost.
    WorkerLost,
}

impl From<failure::FailureKind> for FailureKind {
    fn from(kind: failure::FailureKind) -> Self {
        use failure::FailureKind as Recorded;
        match kind {
            Recorded::Application => Self::Application,
            Recorded::Timeout(kind) => Self::Timeout(kind.into()),
            Recorded::Cancelled => Self::Cancelled,
            Recorded::Terminated => Self::Terminated,
            Recorded::Server => Self::Server,
            Recorded::Activity => Self::Activity,
            Recorded::Child => Self::Child,
            Recorded::WorkerLost => Self::WorkerLost,
        }
    }
}

/// Which limit was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeoutKind {
    /// No worker took the task in time.
    ScheduleToStart,
    /// The whole activity, retries included, took too long.
    ScheduleToClose,
    /// One attempt, or one run, took too long.
    StartToClose,
    /// A running attempt sent no heartbeat in time.
    Heartbeat,
}

impl From<failure::TimeoutKind> for TimeoutKind {
    fn from(kind: failure::TimeoutKind) -> Self {
        use failure::TimeoutKind as Recorded;
        match kind {
            Recorded::ScheduleToStart => Self::ScheduleToStart,
            Recorded::ScheduleToClose => Self::ScheduleToClose,
            Recorded::StartToClose => Self::StartToClose,
            Recorded::Heartbeat => Self::Heartbeat,
        }
    }
}

/// Whether another attempt follows a failure, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RetryState {
    /// Another attempt follows.
    InProgress,
    /// The failure is marked as not retryable.
    NonRetryableFailure,
    /// No time is left for another attempt.
    Timeout,
    /// The policy allows no further attempt.
    MaximumAttemptsReached,
    /// There is no policy, or its retries are recorded by the workflow that started the run.
    PolicyNotSet,
    /// Cancellation was requested.
    CancelRequested,
}

impl From<retry::RetryState> for RetryState {
    fn from(state: retry::RetryState) -> Self {
        use retry::RetryState as Recorded;
        match state {
            Recorded::InProgress => Self::InProgress,
            Recorded::NonRetryableFailure => Self::NonRetryableFailure,
            Recorded::Timeout => Self::Timeout,
            Recorded::MaximumAttemptsReached => Self::MaximumAttemptsReached,
            Recorded::PolicyNotSet => Self::PolicyNotSet,
            Recorded::CancelRequested => Self::CancelRequested,
        }
    }
}

/// Why a child was not started, or a message to another workflow not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeliveryFailure {
    /// The workflow or run does not exist.
    NotFound,
    /// The run is closed.
    Closed,
    /// A workflow of that id already exists.
    AlreadyExists,
    /// The target refused it because of a limit.
    LimitExceeded,
    /// The namespace does not exist.
    NamespaceNotFound,
    /// The target's namespace does not accept commands from the namespace of the source.
    NamespaceRefused,
    /// The target's server refused it; its log says why.
    Refused,
}

impl From<event::DeliveryFailure> for DeliveryFailure {
    fn from(cause: event::DeliveryFailure) -> Self {
        use event::DeliveryFailure as Recorded;
        match cause {
            Recorded::NotFound => Self::NotFound,
            Recorded::Closed => Self::Closed,
            Recorded::AlreadyExists => Self::AlreadyExists,
            Recorded::LimitExceeded => Self::LimitExceeded,
            Recorded::NamespaceNotFound => Self::NamespaceNotFound,
            Recorded::NamespaceRefused => Self::NamespaceRefused,
            Recorded::Refused => Self::Refused,
        }
    }
}

/// For people.
impl fmt::Display for DeliveryFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "there is no such workflow",
            Self::Closed => "it is closed",
            Self::AlreadyExists => "a workflow with that id already exists",
            Self::LimitExceeded => "it has reached one of its limits",
            Self::NamespaceNotFound => "there is no such namespace",
            Self::NamespaceRefused => {
                "its namespace does not accept commands from this one; allow it with accepts_from in its \
                 configuration"
            }
            Self::Refused => "its server refused it; see the server's log for the reason",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(message: &str) -> failure::Failure {
        failure::Failure { message: message.into(), ..failure::Failure::default() }
    }

    #[test]
    fn a_failure_keeps_its_causes_and_what_it_does_not_show() {
        let causes = vec![recorded("card"), recorded("expired")];
        let outer = failure::Failure {
            causes: causes.into(),
            non_retryable: true,
            next_retry_delay: Some(Duration::from_secs(7)),
            ..recorded("not paid")
        };
        let shown = Failure::from(outer.clone());
        let messages: Vec<_> = shown.chain().map(Failure::message).collect();
        assert_eq!(messages, ["not paid", "card", "expired"]);
        assert!(shown.is_non_retryable());
        assert_eq!(failure::Failure::from(shown), outer);
    }

    #[test]
    fn an_interceptor_ends_an_attempt_by_the_error_of_an_activity() {
        let failure = Failure::from(ActivityError::new("not now").non_retryable());
        assert_eq!((failure.to_string().as_str(), failure.is_non_retryable()), ("not now", true));
        assert_eq!(failure.kind(), FailureKind::Application);
    }
}
