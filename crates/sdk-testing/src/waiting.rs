//! What a run waits for, in a form that a test can compare.

use std::{fmt, time::Duration};

use abide_sdk::{
    Timestamp,
    client::{ClientError, WorkflowHandle},
    list::{Wait, WaitKind},
};

use crate::TestEnvironment;

/// Something that a run waits for.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// For time to pass: this much is left.
    Sleep(Duration),
    /// For a signal.
    Signal {
        /// Its name; empty for any.
        name: String,
        /// How much time is left, if the wait has a deadline.
        left: Option<Duration>,
    },
    /// For a condition.
    Condition {
        /// Its key.
        key: String,
        /// How much time is left, if the wait has a deadline.
        left: Option<Duration>,
    },
    /// For a person.
    Approval {
        /// The key of the request.
        key: String,
        /// How much time is left, if the wait has a deadline.
        left: Option<Duration>,
    },
    /// For the next attempt of an activity or a child: this much is left.
    Retry(Duration),
}

impl Waiting {
    /// For a signal, without a deadline.
    pub fn signal(name: impl Into<String>) -> Self {
        Self::Signal { name: name.into(), left: None }
    }

    /// For a condition, without a deadline.
    pub fn condition(key: impl Into<String>) -> Self {
        Self::Condition { key: key.into(), left: None }
    }

    /// For a person, without a deadline.
    pub fn approval(key: impl Into<String>) -> Self {
        Self::Approval { key: key.into(), left: None }
    }

    /// The same, with this much time left.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        match &mut self {
            Self::Sleep(left) | Self::Retry(left) => *left = time,
            Self::Signal { left, .. }
            | Self::Condition { left, .. }
            | Self::Approval { left, .. } => *left = Some(time),
        }
        self
    }

    fn of(wait: Wait, now: Timestamp) -> Self {
        let Wait { kind, name, until, .. } = wait;
        let left = until.map(|until| until.saturating_since(now));
        let rest = left.unwrap_or(Duration::MAX);
        match kind {
            WaitKind::Timer | WaitKind::Schedule => Self::Sleep(rest),
            WaitKind::Signal => Self::Signal { name, left },
            WaitKind::Condition => Self::Condition { key: name, left },
            WaitKind::Approval => Self::Approval { key: name, left },
            // The kinds are open to additions; what is left are the delays before another attempt.
            _ => Self::Retry(rest),
        }
    }
}

impl TestEnvironment {
    /// Waits until everything that is in progress has been processed, and returns what the run then
    /// waits for, the nearest first:
    /// `assert_eq!(env.waits(&order).await?, [Waiting::signal("paid").within(days(3))])`.
    pub async fn waits<W>(&self, run: &WorkflowHandle<W>) -> Result<Vec<Waiting>, ClientError> {
        self.settle().await;
        let now = self.now();
        let mut waits = run.waits().await?;
        waits.sort_by_key(|wait| wait.until.unwrap_or(Timestamp::NEVER));
        Ok(waits.into_iter().map(|wait| Waiting::of(wait, now)).collect())
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, left) = match self {
            Self::Sleep(left) => ("sleep".to_owned(), Some(left)),
            Self::Retry(left) => ("retry".to_owned(), Some(left)),
            Self::Signal { name, left } => (format!("signal {name}"), left.as_ref()),
            Self::Condition { key, left } => (format!("condition {key}"), left.as_ref()),
            Self::Approval { key, left } => (format!("approval {key}"), left.as_ref()),
        };
        match left {
            Some(left) => write!(f, "{what}, {left:?} left"),
            None => write!(f, "{what}, no deadline"),
        }
    }
}
