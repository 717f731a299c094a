//! What an activity knows about its attempt, and how it speaks to the engine while it runs.

use std::sync::Arc;

use abide_core::{
    attempt::ActivityToken,
    ids::{ExecutionId, RunId, WorkflowKey},
    payload::Payloads,
    run::ActivityGiven,
};

use super::{ActivityError, CancelToken, Cancelled};
use crate::payload::{self, Data, PayloadError};

/// What is known about an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityInfo {
    /// What was handed out.
    pub given: ActivityGiven,
    /// The workflow that asked for it.
    pub workflow: WorkflowKey,
    /// The run that asked for it.
    pub run: RunId,
}

/// How a running attempt speaks to its worker.
pub trait AttemptLink: Send + Sync {
    /// Reports that the attempt is alive, and what the next attempt may go on from.
    fn heartbeat(&self, details: Payloads);

    /// What names the attempt to others; nothing if it runs inside a workflow task.
    fn token(&self) -> Option<ActivityToken>;
}

/// The first argument of an activity that wants it. Clones are the same context.
#[derive(Clone)]
pub struct ActivityContext {
    info: Arc<ActivityInfo>,
    link: Arc<dyn AttemptLink>,
    cancel: CancelToken,
}

impl ActivityContext {
    /// The context of one attempt.
    pub fn new(info: ActivityInfo, link: Arc<dyn AttemptLink>, cancel: CancelToken) -> Self {
        Self { info: Arc::new(info), link, cancel }
    }

    /// Everything that is known about the attempt.
    pub fn info(&self) -> &ActivityInfo {
        &self.info
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.info.given.attempt
    }

    /// The same for every attempt of this activity and different for any other: what a request to
    /// another system can be made idempotent with.
    pub fn execution_id(&self) -> &ExecutionId {
        &self.info.given.execution
    }

    /// The word by which somebody else can complete this attempt, as with
    /// `client.activity(token).complete(&result)`. Give it away, then return
    /// [`ActivityError::completed_later`]. A local activity has none.
    pub fn token(&self) -> Result<String, ActivityError> {
        let token = self.link.token().map(|token| token.to_text());
        token.ok_or_else(|| {
            ActivityError::new("a local activity has no token: call it as an activity")
                .non_retryable()
        })
    }

    /// Says that the attempt is alive, and what the next attempt may go on from.
    pub fn heartbeat<T: Data>(&self, details: &T) -> Result<(), PayloadError> {
        let details = payload::encode(details).map_err(|error| error.of("heartbeat"))?;
        self.link.heartbeat(details);
        Ok(())
    }

    /// What the attempt before this one reported last.
    pub fn heartbeat_details<T: Data>(&self) -> Result<Option<T>, PayloadError> {
        let details = self.info.given.heartbeat.as_deref().map(payload::decode);
        details.transpose().map_err(|error: PayloadError| error.of("heartbeat"))
    }

    /// The attempt was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Ready when the attempt is asked to stop. Return
    /// [`ActivityError::cancelled`](super::ActivityError::cancelled) then. The engine asks when the
    /// workflow gives the activity up, which is heard by heartbeats, and when the attempt's time is
    /// up; an attempt that does not stop a second after that is dropped where it awaits.
    pub fn cancelled(&self) -> Cancelled {
        self.cancel.cancelled()
    }
}

impl std::fmt::Debug for ActivityContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActivityContext").field("info", &self.info).finish_non_exhaustive()
    }
}
