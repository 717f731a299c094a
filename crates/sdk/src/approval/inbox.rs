//! The inbox: open requests of all runs, for the people who decide.

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
    client::{Client, ClientError, List},
    payload::{self, AsPayload, PayloadError},
};

/// An open request of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingRequest {
    /// The workflow whose run asks.
    pub workflow: WorkflowId,
    /// The type name of the workflow.
    pub workflow_type: String,
    /// The run that asks.
    pub run: RunId,
    /// The request's id within the run.
    pub request: String,
    /// What is asked, in a few words for people.
    pub subject: String,
    /// The people and roles that may act; empty if anyone may.
    pub actors: Vec<String>,
    /// The names of the choices.
    pub choices: Vec<String>,
    /// When the request was asked.
    pub since: Timestamp,
    /// The deadline; none if the request has no deadline.
    pub until: Option<Timestamp>,
    /// The position in the list; pass it to get the next page.
    pub position: WaitPosition,
    data: PayloadMap,
    update: String,
}

impl Client {
    /// Lists the open requests of all runs, the most urgent first:
    /// `client.approvals(filter).take(10).await?`. The filter's kind is always that of approvals.
    pub fn approvals(&self, filter: WaitFilter) -> List<WaitingRequest> {
        List::new(self.fetch_waits(of_approvals(filter), WaitingRequest::of))
    }

    /// One page of [`Client::approvals`], of at most `limit` requests. For the next page, pass the
    /// [`position`](WaitingRequest::position) of the last one as `after`.
    pub async fn approvals_page(
        &self,
        filter: WaitFilter,
        limit: usize,
    ) -> Result<Vec<WaitingRequest>, ClientError> {
        let rows = self.waits_page(of_approvals(filter), limit).await?;
        Ok(rows.into_iter().filter_map(WaitingRequest::of).collect())
    }
}

fn of_approvals(filter: WaitFilter) -> WaitFilter {
    WaitFilter { kind: Some(WaitKind::Approval), ..filter }
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

    /// Whether a person with one of these names or roles may act.
    pub fn concerns(&self, names: &[&str]) -> bool {
        actors::concerns(&self.actors, names)
    }

    /// A named value that the workflow shows with the request.
    pub fn data<T: AsPayload>(&self, name: &str) -> Option<Result<T, PayloadError>> {
        self.data.get(name).map(|payload| T::from_payload(Some(payload)))
    }

    /// Sends an answer to the run that asks. A refusal is an
    /// [`UpdateRejected`](ClientError::UpdateRejected) error, or an
    /// [`UpdateFailed`](ClientError::UpdateFailed) error if the request records refusals; see
    /// [`Refusal::of`](super::Refusal::of).
    pub async fn answer(&self, client: &Client, answer: Answer) -> Result<Receipt, ClientError> {
        let handle = client.handle_untyped(self.workflow.clone()).run(self.run);
        let receipt = handle.update_untyped(&*self.update, payload::encode(&answer)?).await?;
        Ok(payload::decode(&receipt)?)
    }
}
