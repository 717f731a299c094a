//! An attempt of an activity, to test the activity alone, without an engine or worker.

use std::sync::{Arc, Mutex, MutexGuard};

use abide_core::{
    attempt::ActivityToken,
    event::{ActivitySpec, Delivery},
    ids::{RunId, WorkflowKey},
    payload::Payloads,
    run::ActivityGiven,
    time::Timestamp,
};
use abide_sdk::{
    ActivityContext, PayloadValue,
    activity::{ActivityInfo, AttemptLink, CancelToken},
    payload::{self, PayloadError},
};

use crate::lock::lock;

/// An attempt of an activity, to test the activity alone: it provides the context, collects what
/// the activity reports, and can ask it to stop.
///
/// ```
/// # extern crate abide_sdk as abide;
/// use abide::prelude::*;
/// use abide_sdk_testing::TestAttempt;
///
/// #[activity]
/// async fn import(ctx: ActivityContext, lines: u64) -> Result<u64, ActivityError> {
///     let done = ctx.heartbeat_details()?.unwrap_or(0);
///     for line in done..lines {
///         ctx.heartbeat(&(line + 1))?;
///     }
///     Ok(lines - done)
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let second = TestAttempt::new().number(2).after_heartbeat(&2_u64)?;
/// assert_eq!(import(second.context(), 5).await?, 3);
/// assert_eq!(second.heartbeats::<u64>()?, [3, 4, 5]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TestAttempt {
    info: ActivityInfo,
    reported: Arc<Reported>,
    cancel: CancelToken,
}

impl TestAttempt {
    /// The first attempt of some activity.
    pub fn new() -> Self {
        let spec = ActivitySpec {
            activity: "activity-1".into(),
            activity_type: "activity".into(),
            queue: "default".into(),
            input: Payloads::new(),
            header: Default::default(),
            schedule_to_close: None,
            schedule_to_start: None,
            start_to_close: None,
            heartbeat: None,
            retry: None,
            delivery: Delivery::default(),
            retry_of: None,
            attempt: 0,
        };
        let given = ActivityGiven {
            spec,
            execution: "execution-1".into(),
            attempt: 1,
            scheduled_at: Timestamp::EPOCH,
            heartbeat: None,
        };
        let workflow = WorkflowKey { namespace: "default".into(), workflow: "workflow-1".into() };
        let info = ActivityInfo { given, workflow, run: RunId::MIN };
        Self { info, reported: Arc::default(), cancel: CancelToken::new() }
    }

    /// Sets the number of the attempt, from 1.
    #[must_use]
    pub fn number(mut self, attempt: u32) -> Self {
        self.info.given.attempt = attempt;
        self
    }

    /// Sets the last heartbeat of the previous attempt.
    ///
    /// # Errors
    /// If the value cannot be encoded.
    pub fn after_heartbeat<T: PayloadValue>(mut self, details: &T) -> Result<Self, PayloadError> {
        self.info.given.heartbeat = Some(payload::encode(details)?);
        Ok(self)
    }

    /// Context to call the activity with.
    pub fn context(&self) -> ActivityContext {
        let link = Arc::clone(&self.reported) as Arc<dyn AttemptLink>;
        ActivityContext::new(self.info.clone(), link, self.cancel.clone())
    }

    /// Asks the activity to stop.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Heartbeats of the activity, oldest first.
    ///
    /// # Errors
    /// If a heartbeat has another type.
    pub fn heartbeats<T: PayloadValue>(&self) -> Result<Vec<T>, PayloadError> {
        self.reported.lock().iter().map(|details| payload::decode(details)).collect()
    }
}

impl Default for TestAttempt {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug, Default)]
struct Reported(Mutex<Vec<Payloads>>);

impl Reported {
    fn lock(&self) -> MutexGuard<'_, Vec<Payloads>> {
        lock(&self.0)
    }
}

impl AttemptLink for Reported {
    fn heartbeat(&self, details: Payloads) {
        self.lock().push(details);
    }

    fn token(&self) -> Option<ActivityToken> {
        let workflow = WorkflowKey { namespace: "default".into(), workflow: "workflow-1".into() };
        Some(ActivityToken { workflow, run: RunId::MIN, scheduled: 1, start: 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_asked_to_stop() {
        let attempt = TestAttempt::new();
        let context = attempt.context();
        assert_eq!((context.attempt(), context.is_cancelled()), (1, false));
        attempt.cancel();
        assert!(context.is_cancelled());
    }
}
