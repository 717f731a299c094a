//! Failures in a form that any language can raise again: a message, a type, a kind and the causes.

use std::{fmt, ops::Deref, time::Duration};

use serde::{Deserialize, Serialize};

use crate::payload::{self, Extension, Payloads, Size, extension_size};

/// A failure with its causes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Message for people.
    pub message: String,
    /// For programs: class or code of the error, matched against a policy's non-retryable types.
    pub error_type: String,
    /// Stack trace, as the worker's language prints it.
    pub stack: String,
    /// Which part of the system raised it.
    pub kind: FailureKind,
    /// Never retried, regardless of the policy.
    pub non_retryable: bool,
    /// Overrides the policy's delay before the next attempt.
    pub next_retry_delay: Option<Duration>,
    /// Data for the receiver.
    pub details: Payloads,
    /// The failures that led to this one.
    pub causes: Causes,
    /// What a gateway needs to return the failure in its original form.
    #[doc(hidden)]
    pub extension: Extension,
}

/// The failures that led to one, outermost first; the last is the root cause. They are a flat list
/// and not nested, so that a long chain from outside costs no stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Failure>")]
pub struct Causes(Vec<Failure>);

impl FromIterator<Failure> for Causes {
    /// Flattens the failures, each followed by its own causes.
    fn from_iter<I: IntoIterator<Item = Failure>>(failures: I) -> Self {
        let mut causes = Vec::new();
        for mut failure in failures {
            let beneath = std::mem::take(&mut failure.causes);
            causes.push(failure);
            causes.extend(beneath.0);
        }
        Self(causes)
    }
}

impl From<Vec<Failure>> for Causes {
    fn from(failures: Vec<Failure>) -> Self {
        failures.into_iter().collect()
    }
}

impl From<Failure> for Causes {
    fn from(cause: Failure) -> Self {
        Self::from_iter([cause])
    }
}

impl Causes {
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Failure> {
        self.0.iter_mut()
    }
}

impl Deref for Causes {
    type Target = [Failure];

    fn deref(&self) -> &[Failure] {
        &self.0
    }
}

/// Which part of the system raised a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FailureKind {
    /// User code.
    #[default]
    Application,
    Timeout(TimeoutKind),
    /// A requested cancellation took effect.
    Cancelled,
    Terminated,
    /// The engine itself.
    Server,
    /// An activity failed; its cause says why.
    Activity,
    /// A child failed; its cause says why.
    Child,
    /// The worker that held an at-most-once attempt was lost.
    WorkerLost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TimeoutKind {
    /// No worker took the task in time.
    ScheduleToStart,
    /// The whole activity, retries included, took too long.
    ScheduleToClose,
    /// One attempt took too long.
    StartToClose,
    /// A running attempt sent no heartbeat in time.
    Heartbeat,
}

impl TimeoutKind {
    /// Name by which a retry policy excludes this timeout.
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
    #[doc(hidden)]
    pub fn server(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { message: message.into(), kind, ..Self::default() }
    }

    /// Type of the failure by which a worker hands an attempt back.
    const HANDED_BACK: &str = "Abide:HandedBack";

    /// By this failure a worker hands an attempt back whose code it has not run, because it cannot:
    /// it lacks the key to read the input, for example. The attempt is given again, to any worker,
    /// and does not count against the policy's maximum.
    #[doc(hidden)]
    pub fn hand_back(message: impl Into<String>) -> Self {
        let error_type = Self::HANDED_BACK.into();
        Self { error_type, ..Self::server(FailureKind::WorkerLost, message) }
    }

    /// Whether a worker handed the attempt back.
    #[doc(hidden)]
    pub fn handed_back(&self) -> bool {
        self.kind == FailureKind::WorkerLost && self.error_type == Self::HANDED_BACK
    }

    /// Whether it is a timeout of an attempt, an activity or a child.
    pub const fn is_timeout(&self) -> bool {
        matches!(self.kind, FailureKind::Timeout(_))
    }

    /// Its size including the causes, for limits.
    #[doc(hidden)]
    pub fn size(&self) -> Size {
        self.chain()
            .map(|failure| {
                let data = payload::size(&failure.details) + extension_size(&failure.extension);
                let texts = failure.message.len() + failure.error_type.len() + failure.stack.len();
                data + Size { bytes: texts, items: 1 }
            })
            .sum()
    }

    /// Number of failures: this one and its causes.
    #[doc(hidden)]
    pub fn depth(&self) -> usize {
        1 + self.causes.len()
    }

    /// Keeps at most this many causes: the outermost ones, and the root cause.
    #[must_use]
    #[doc(hidden)]
    pub fn shortened(mut self, causes: usize) -> Self {
        let kept = &mut self.causes.0;
        if kept.len() > causes {
            let innermost = kept.pop().filter(|_| causes > 0);
            kept.truncate(causes.saturating_sub(1));
            kept.extend(innermost);
        }
        self
    }

    /// The failure, then its causes.
    pub fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&*self.causes)
    }

    /// Failure of an attempt whose deadline passed.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A failure with this many nested causes, numbered from the outside in.
    fn wrapped(causes: usize) -> Failure {
        let number = |number: usize| Failure { message: number.to_string(), ..Failure::default() };
        let wrap = |cause: Failure, outer| Failure { causes: cause.into(), ..number(outer) };
        (0..causes).rev().fold(number(causes), wrap)
    }

    fn messages(failure: &Failure) -> Vec<&str> {
        failure.chain().map(|failure| failure.message.as_str()).collect()
    }

    #[test]
    fn a_shortened_failure_keeps_its_top_and_the_innermost_cause() {
        assert_eq!(messages(&wrapped(5).shortened(2)), ["0", "1", "5"]);
        assert_eq!(messages(&wrapped(2).shortened(2)), ["0", "1", "2"]);
        assert_eq!(messages(&wrapped(3).shortened(1)), ["0", "3"]);
        assert_eq!(messages(&wrapped(3).shortened(0)), ["0"]);
    }

    #[test]
    fn causes_of_causes_stand_beside_them() {
        let failure = wrapped(3);
        assert_eq!(messages(&failure), ["0", "1", "2", "3"]);
        assert!(failure.causes.iter().all(|cause| cause.causes.is_empty()));
        let two: Causes = [wrapped(1), wrapped(1)].into_iter().collect();
        let two = Failure { causes: two, ..Failure::default() };
        assert_eq!(messages(&two), ["", "0", "1", "0", "1"]);
    }
}
