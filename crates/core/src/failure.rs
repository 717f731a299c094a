//! Why something failed, in a form that any language can raise again: a message, a type, a kind and
//! the failure beneath it.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::payload::{Extension, Payload, Payloads};

/// A failure with its causes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// For people.
    pub message: String,
    /// For programs: an error's class or code, compared with a policy's non-retryable types.
    pub error_type: String,
    /// Where it happened, as the worker's language prints it.
    pub stack: String,
    /// What part of the system it comes from.
    pub kind: FailureKind,
    /// Never retried, whatever the policy says.
    pub non_retryable: bool,
    /// Overrides the policy's delay before the next attempt.
    pub next_retry_delay: Option<Duration>,
    /// Data for the receiver.
    pub details: Payloads,
    /// The failure that led to this one.
    pub cause: Option<Box<Failure>>,
    /// What a gateway must keep to give the failure back as it came.
    pub extension: Extension,
}

/// What part of the system a failure comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FailureKind {
    /// Raised by user code.
    #[default]
    Application,
    /// A timeout passed.
    Timeout(TimeoutKind),
    /// Cancellation was asked for and took effect.
    Cancelled,
    /// Terminated from outside.
    Terminated,
    /// The engine itself failed the operation.
    Server,
    /// An activity failed; the cause says why.
    Activity,
    /// A child failed; the cause says why.
    Child,
    /// The worker that held an at-most-once attempt was lost.
    WorkerLost,
}

/// Which of the deadlines passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TimeoutKind {
    /// No worker took the task in time.
    ScheduleToStart,
    /// The whole activity, retries included, took too long.
    ScheduleToClose,
    /// One attempt took too long.
    StartToClose,
    /// A running attempt did not report in time.
    Heartbeat,
}

impl TimeoutKind {
    /// The name by which a retry policy excludes this timeout.
    pub const fn error_type(self) -> &'static str {
        match self {
            Self::ScheduleToStart => "Timeout:ScheduleToStart",
            Self::ScheduleToClose => "Timeout:ScheduleToClose",
            Self::StartToClose => "Timeout:StartToClose",
            Self::Heartbeat => "Timeout:Heartbeat",
        }
    }
}

impl Failure {
    /// A failure raised by the engine.
    pub fn server(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { message: message.into(), kind, ..Self::default() }
    }

    /// Bytes that the failure occupies with its causes, for limits.
    pub fn size(&self) -> usize {
        self.chain()
            .map(|failure| {
                let details: usize = failure.details.iter().map(Payload::size).sum();
                failure.message.len() + failure.error_type.len() + failure.stack.len() + details
            })
            .sum()
    }

    /// How many failures there are, this one and its causes.
    pub fn depth(&self) -> usize {
        self.chain().count()
    }

    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |failure| failure.cause.as_deref())
    }

    /// The failure of an attempt whose deadline passed.
    pub fn timeout(kind: TimeoutKind) -> Self {
        Self {
            message: format!("{kind} timeout"),
            error_type: kind.error_type().into(),
            kind: FailureKind::Timeout(kind),
            ..Self::default()
        }
    }
}

impl fmt::Display for TimeoutKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ScheduleToStart => "schedule-to-start",
            Self::ScheduleToClose => "schedule-to-close",
            Self::StartToClose => "start-to-close",
            Self::Heartbeat => "heartbeat",
        })
    }
}
