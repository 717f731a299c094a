//! Completing an attempt of an activity from outside its worker.

use abide_core::{
    attempt::{ActivityToken, AttemptName, AttemptReport},
    ids::{ActivityId, RunId, WorkflowId},
    limits::InvalidField,
    operation::{Alive, ReportAttempt, Reported, RunTarget},
    payload::Payloads,
    run::Resolution,
};

use super::{Client, ClientError};
use crate::{
    payload::{self, PayloadValue},
    returned::{BoxError, ReturnedError},
};

/// A handle to an attempt of an activity, for a process that is not its worker.
///
/// An attempt ends once. A second completion, or one for an attempt that the engine has given up,
/// fails with `Refused(StaleAttempt)`, or with `Refused(RunClosed)` if the run is closed. So does a
/// retry whose first call took effect but lost its answer.
#[derive(Clone)]
#[must_use = "nothing is reported until one of its methods is awaited"]
pub struct ActivityHandle {
    client: Client,
    attempt: Result<AttemptName, InvalidField>,
}

impl Client {
    /// A handle to the attempt of this token, from
    /// [`ActivityContext::token`](crate::ActivityContext::token). An invalid token is reported when
    /// the handle is used.
    pub fn activity(&self, token: &str) -> ActivityHandle {
        let attempt = ActivityToken::from_text(token).map(AttemptName::Token);
        ActivityHandle { client: self.clone(), attempt }
    }

    /// A handle to the running attempt of an activity, by its id within the current run of a
    /// workflow.
    pub fn activity_by_id(
        &self,
        workflow: impl Into<WorkflowId>,
        activity: impl Into<ActivityId>,
    ) -> ActivityHandle {
        let target = RunTarget { workflow: self.workflow(workflow.into()), run: None };
        let attempt = Ok(AttemptName::Activity(target, activity.into()));
        ActivityHandle { client: self.clone(), attempt }
    }
}

impl ActivityHandle {
    /// Binds the handle to this run; for an activity by id.
    pub fn in_run(mut self, run: RunId) -> Self {
        if let Ok(AttemptName::Activity(target, _)) = &mut self.attempt {
            target.run = Some(run);
        }
        self
    }

    /// Completes the activity with this result.
    pub async fn complete<T: PayloadValue>(&self, result: &T) -> Result<(), ClientError> {
        let result = payload::encode(result).map_err(|error| error.of("result of an activity"))?;
        self.complete_untyped(result).await
    }

    /// Completes the activity with a result that is already encoded.
    pub async fn complete_untyped(&self, result: Payloads) -> Result<(), ClientError> {
        self.end(Resolution::Completed(result)).await
    }

    /// Fails the attempt. It is retried as the policy and the error say, as if its worker had
    /// reported it.
    pub async fn fail<E: Into<BoxError> + 'static>(&self, error: E) -> Result<(), ClientError> {
        self.end(Resolution::Failed(ReturnedError::new(error).into_failure())).await
    }

    /// Reports the activity as cancelled; refused if the workflow did not request it.
    pub async fn cancelled<T: PayloadValue>(&self, details: &T) -> Result<(), ClientError> {
        let details = payload::encode(details).map_err(|error| error.of("details"))?;
        self.cancelled_untyped(details).await
    }

    /// As [`cancelled`](Self::cancelled), with details that are already encoded.
    pub async fn cancelled_untyped(&self, details: Payloads) -> Result<(), ClientError> {
        self.end(Resolution::Cancelled(details)).await
    }

    /// Sends a heartbeat: the attempt is alive, and the next attempt can resume from `details`.
    /// Returns whether the workflow has requested to cancel the activity.
    pub async fn heartbeat<T: PayloadValue>(&self, details: &T) -> Result<bool, ClientError> {
        let details = payload::encode(details).map_err(|error| error.of("heartbeat"))?;
        self.heartbeat_untyped(details).await
    }

    /// As [`heartbeat`](Self::heartbeat), with details that are already encoded.
    pub async fn heartbeat_untyped(&self, details: Payloads) -> Result<bool, ClientError> {
        match self.report(AttemptReport::Heartbeat(details)).await? {
            Reported::Alive(Alive { cancel_requested }) => Ok(cancel_requested),
            ended @ Reported::Ended(_) => Err(ClientError::unexpected(&ended)),
        }
    }

    async fn end(&self, resolution: Resolution) -> Result<(), ClientError> {
        self.report(AttemptReport::Resolved(resolution)).await.map(drop)
    }

    async fn report(&self, report: AttemptReport) -> Result<Reported, ClientError> {
        self.client.ask(ReportAttempt { attempt: self.attempt.clone()?, report }).await
    }
}
