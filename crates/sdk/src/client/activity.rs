//! Speaking for an attempt of an activity that its worker has left to somebody else.

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
    payload::{self, Data},
    raised::{BoxError, Raised},
};

/// An attempt of an activity, as somebody who is no worker speaks for it.
///
/// An attempt ends once. Whoever comes second, or speaks for an attempt that was given up meanwhile, is
/// told `Refused(StaleAttempt)`, or `Refused(RunClosed)` if the run is over. So is a call that is
/// repeated because the answer to the first was lost.
#[derive(Clone)]
#[must_use = "nothing is said until one of its methods is awaited"]
pub struct ActivityHandle {
    client: Client,
    attempt: Result<AttemptName, InvalidField>,
}

impl Client {
    /// The attempt of this token, which its activity has given away. Whether the token is good shows
    /// when the handle is used.
    pub fn activity(&self, token: &str) -> ActivityHandle {
        let attempt = ActivityToken::from_text(token).map(AttemptName::Token);
        ActivityHandle { client: self.clone(), attempt }
    }

    /// The attempt that runs of an activity, by its id within the current run of a workflow.
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
    /// Only in this run; for an activity by id.
    pub fn in_run(mut self, run: RunId) -> Self {
        if let Ok(AttemptName::Activity(target, _)) = &mut self.attempt {
            target.run = Some(run);
        }
        self
    }

    /// The activity has this result.
    pub async fn complete<T: Data>(&self, result: &T) -> Result<(), ClientError> {
        let result = payload::encode(result).map_err(|error| error.of("result of an activity"))?;
        self.complete_untyped(result).await
    }

    /// The activity has a result whose type only others know.
    pub async fn complete_untyped(&self, result: Payloads) -> Result<(), ClientError> {
        self.end(Resolution::Completed(result)).await
    }

    /// The attempt failed. It is retried as the policy and the error say, as if its worker had said so.
    pub async fn fail<E: Into<BoxError> + 'static>(&self, error: E) -> Result<(), ClientError> {
        self.end(Resolution::Failed(Raised::new(error).into_failure())).await
    }

    /// The activity was cancelled, as the workflow asked for; refused if it did not.
    pub async fn cancelled<T: Data>(&self, details: &T) -> Result<(), ClientError> {
        let details = payload::encode(details).map_err(|error| error.of("details"))?;
        self.cancelled_untyped(details).await
    }

    /// The same with details whose type only others know.
    pub async fn cancelled_untyped(&self, details: Payloads) -> Result<(), ClientError> {
        self.end(Resolution::Cancelled(details)).await
    }

    /// The attempt is alive, and the next one may go on from this. Says whether the workflow asked for
    /// the activity to be cancelled.
    pub async fn heartbeat<T: Data>(&self, details: &T) -> Result<bool, ClientError> {
        let details = payload::encode(details).map_err(|error| error.of("heartbeat"))?;
        self.heartbeat_untyped(details).await
    }

    /// The same with details whose type only others know.
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
