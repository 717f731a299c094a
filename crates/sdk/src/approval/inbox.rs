//! The inbox: requests of all runs that wait for a decision, for those who decide.

use abide_core::{
    codec,
    event::{Approval, WaitDetails},
    ids::{RunId, WorkflowId},
    list::{WaitFilter, WaitKind, WaitPosition, WaitRow},
    payload::PayloadMap,
};

use super::{Answer, Receipt, actors};
use crate::{
    Timestamp,
    client::{Client, ClientError},
    payload::{self, Data, PayloadError},
};

/// A request of some run that waits for a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingRequest {
    /// The workflow that asks.
    pub workflow: WorkflowId,
    /// Its type.
    pub workflow_type: String,
    /// Its run.
    pub run: RunId,
    /// The request's id within the run.
    pub request: String,
    /// What is asked.
    pub subject: String,
    /// The people and roles that may act; empty if anyone may.
    pub actors: Vec<String>,
    /// What can be decided.
    pub choices: Vec<String>,
    /// Since when it is asked.
    pub since: Timestamp,
    /// When it ends at the latest; none without a deadline.
    pub until: Option<Timestamp>,
    /// Its place in the list, which the next page follows.
    pub position: WaitPosition,
    data: PayloadMap,
    update: String,
}

impl Client {
    /// The requests that wait for a decision, over all runs, the most urgent first. The filter's kind
    /// is that of approvals, whatever it says.
    pub async fn approvals(
        &self,
        filter: WaitFilter,
        limit: usize,
    ) -> Result<Vec<WaitingRequest>, ClientError> {
        let filter = WaitFilter { kind: Some(WaitKind::Approval), ..filter };
        let rows = self.waits(filter, limit).await?;
        Ok(rows.into_iter().filter_map(WaitingRequest::of).collect())
    }
}

impl WaitingRequest {
    fn of(row: WaitRow) -> Option<Self> {
        let position = row.position();
        let details = codec::decode_wait_details(row.details).ok().flatten()?;
        let WaitDetails { subject, actors, data, approval } = details;
        let Approval { request, update, choices } = approval?;
        Some(Self {
            workflow: row.workflow,
            workflow_type: row.workflow_type,
            run: row.run,
            request,
            subject,
            actors,
            choices,
            since: row.since,
            until: Some(row.until).filter(|until| !until.never()),
            position,
            data,
            update,
        })
    }

    /// Whether somebody of this name, or of these roles, may act.
    pub fn concerns(&self, names: &[&str]) -> bool {
        actors::concerns(&self.actors, names)
    }

    /// What else the workflow shows, by its name.
    pub fn data<T: Data>(&self, name: &str) -> Option<Result<T, PayloadError>> {
        self.data.get(name).map(|payload| T::from_payload(Some(payload)))
    }

    /// Sends an answer to the run that asks. What the run refuses is an
    /// [`UpdateRejected`](ClientError::UpdateRejected), or an
    /// [`UpdateFailed`](ClientError::UpdateFailed) if the request records refusals; see
    /// [`Refusal::of`](super::Refusal::of).
    pub async fn answer(&self, client: &Client, answer: Answer) -> Result<Receipt, ClientError> {
        let handle = client.handle_untyped(self.workflow.clone()).run(self.run);
        let receipt = handle.update_untyped(&*self.update, payload::encode(&answer)?).await?;
        Ok(payload::decode(&receipt)?)
    }
}
