//! What an activity knows about its attempt, and how it communicates with the engine while it runs.

use std::sync::Arc;

use abide_core::{
    attempt::ActivityToken,
    ids::{ActivityId, ExecutionId, RunId, WorkflowId, WorkflowKey},
    payload::Payloads,
    run::ActivityGiven,
};

use super::{ActivityError, CancelToken, Cancelled};
use crate::{
    interceptor,
    payload::{self, PayloadError, PayloadValue},
};

/// The facts about an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityInfo {
    /// The attempt, as the engine dispatched it.
    pub given: ActivityGiven,
    /// The workflow that scheduled it.
    pub workflow: WorkflowKey,
    /// The run that scheduled it.
    pub run: RunId,
}

/// The link from a running attempt to its worker.
pub trait AttemptLink: Send + Sync {
    /// Sends a heartbeat: the attempt is alive, and the next attempt can resume from `details`.
    fn heartbeat(&self, details: Payloads);

    /// The token that names the attempt to other processes; none for a local activity.
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
    /// The context of one attempt. Workers and test harnesses make it.
    #[doc(hidden)]
    pub fn new(info: ActivityInfo, link: Arc<dyn AttemptLink>, cancel: CancelToken) -> Self {
        Self { info: Arc::new(info), link, cancel }
    }

    /// Everything that is known about the attempt, as the engine says it. For Abide's own crates.
    #[doc(hidden)]
    pub fn info(&self) -> &ActivityInfo {
        &self.info
    }

    /// The id of the activity, unique among the open activities of its run: with the workflow's id it
    /// names the activity to `client.activity_by_id`.
    pub fn activity_id(&self) -> &ActivityId {
        &self.info.given.spec.activity
    }

    /// The type name of the activity.
    pub fn activity_type(&self) -> &str {
        &self.info.given.spec.activity_type
    }

    /// The id of the workflow that scheduled the activity.
    pub fn workflow_id(&self) -> &WorkflowId {
        &self.info.workflow.workflow
    }

    /// The run that scheduled the activity.
    pub fn run_id(&self) -> RunId {
        self.info.run
    }

    /// A header of the activity, as the workflow's interceptors have set it: see
    /// [`interceptor`](crate::interceptor).
    pub fn header<T: PayloadValue>(&self, name: &str) -> Result<Option<T>, PayloadError> {
        interceptor::header(&self.info.given.spec.header, name)
    }

    /// The number of this attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.info.given.attempt
    }

    /// An id that is the same for every attempt of this activity and different for any other. Use
    /// it as the idempotency key of requests to other systems.
    pub fn execution_id(&self) -> &ExecutionId {
        &self.info.given.execution
    }

    /// The token that lets another process complete this attempt, by
    /// `client.activity(token).complete(&result)`. Hand it over, then return
    /// [`ActivityError::completed_later`]. A local activity has none.
    pub fn token(&self) -> Result<String, ActivityError> {
        let token = self.link.token().map(|token| token.to_text());
        token.ok_or_else(|| {
            ActivityError::new("a local activity has no token: call it as a regular activity")
                .non_retryable()
        })
    }

    /// Sends a heartbeat: the attempt is alive, and the next attempt can resume from `details`.
    pub fn heartbeat<T: PayloadValue>(&self, details: &T) -> Result<(), PayloadError> {
        let details = payload::encode(details).map_err(|error| error.of("heartbeat"))?;
        self.link.heartbeat(details);
        Ok(())
    }

    /// The details of the last heartbeat of earlier attempts; none if there was none.
    pub fn heartbeat_details<T: PayloadValue>(&self) -> Result<Option<T>, PayloadError> {
        let details = self.info.given.heartbeat.as_deref().map(payload::decode);
        details.transpose().map_err(|error: PayloadError| error.of("heartbeat"))
    }

    /// Whether the attempt was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Resolves when the attempt is asked to stop; then return
    /// [`ActivityError::cancelled`](super::ActivityError::cancelled). The engine asks when the
    /// workflow cancels the activity, which the worker learns from heartbeats, and when the
    /// attempt's time is up. An attempt that does not stop within a second of being given up is
    /// dropped at its next await.
    pub fn cancelled(&self) -> Cancelled {
        self.cancel.cancelled()
    }
}

impl std::fmt::Debug for ActivityContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActivityContext").field("info", &self.info).finish_non_exhaustive()
    }
}
