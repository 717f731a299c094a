//! The inbox: open requests of all runs, for the people who decide.

use abide_core::{
    event::Approval,
    ids::{RunId, WorkflowId},
    payload::PayloadMap,
};

use super::{Answer, AnswerCall, Choice, actors};
use crate::{
    Timestamp,
    client::{Client, ClientError, List},
    list::{self, WaitFilter, WaitKey, WaitKind, WaitPosition, WaitRow},
    payload::{PayloadError, PayloadValue},
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
    /// Identifies the wait for the decision within its run.
    pub key: WaitKey,
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
    /// The position in the list; pass it to [`WaitFilter::after`] to get the next page.
    pub position: WaitPosition,
    data: PayloadMap,
    pub(super) update: String,
}

impl Client {
    /// Lists the open requests of all runs, the most urgent first:
    /// `client.approvals(filter).take(10).await?`. The filter's kind is always that of approvals.
    pub fn approvals(&self, filter: WaitFilter) -> List<WaitingRequest> {
        let filter = filter.kind(WaitKind::Approval).in_namespace(self.namespace());
        List::new(self.fetch_waits(filter, WaitingRequest::of))
    }

    /// One page of [`Client::approvals`], of at most `limit` requests. For the next page, pass the
    /// [`position`](WaitingRequest::position) of the last one to [`WaitFilter::after`].
    pub async fn approvals_page(
        &self,
        filter: WaitFilter,
        limit: usize,
    ) -> Result<Vec<WaitingRequest>, ClientError> {
        let rows = self.waits_page(filter.kind(WaitKind::Approval), limit).await?;
        Ok(rows.into_iter().filter_map(WaitingRequest::of).collect())
    }
}

impl WaitingRequest {
    fn of(row: WaitRow) -> Option<Self> {
        let Approval { request, update, choices } = row.approval?;
        Some(Self {
            workflow: row.workflow,
            workflow_type: row.workflow_type,
            run: row.run,
            key: row.key,
            request,
            subject: row.subject,
            actors: row.actors,
            choices,
            since: row.since,
            until: row.until,
            position: row.position,
            data: row.data,
            update,
        })
    }

    /// Whether a person with one of these names or roles may act.
    pub fn concerns(&self, names: &[&str]) -> bool {
        actors::concerns(&self.actors, names)
    }

    /// A named value that the workflow shows with the request.
    pub fn data<T: PayloadValue>(&self, name: &str) -> Option<Result<T, PayloadError>> {
        list::decoded(&self.data, name)
    }

    /// The names of all values that the workflow shows with the request.
    pub fn data_names(&self) -> impl Iterator<Item = &str> {
        self.data.keys().map(String::as_str)
    }

    /// Approves the request in the name of this person. Set options on the returned value, then await
    /// it.
    pub fn approve(&self, client: &Client, approver: impl Into<String>) -> AnswerCall {
        self.answer(client, Answer::approve(&*self.request, approver))
    }

    /// Rejects the request in the name of this person. Set options on the returned value, then await
    /// it.
    pub fn reject(&self, client: &Client, approver: impl Into<String>) -> AnswerCall {
        self.answer(client, Answer::reject(&*self.request, approver))
    }

    /// Answers the request with one of its own choices, in the name of this person. Set options on the
    /// returned value, then await it.
    pub fn choose<C: Choice>(
        &self,
        client: &Client,
        approver: impl Into<String>,
        choice: &C,
    ) -> AnswerCall {
        let answer = Answer::choose(&*self.request, approver, choice);
        AnswerCall::new(client, self, answer)
    }

    /// Lets another person decide in the place of this one. Set options on the returned value, then
    /// await it.
    pub fn delegate(
        &self,
        client: &Client,
        approver: impl Into<String>,
        to: impl Into<String>,
    ) -> AnswerCall {
        self.answer(client, Answer::delegate(&*self.request, approver, to))
    }

    /// Sends this answer, whose request becomes this one. Await the returned value.
    pub fn answer(&self, client: &Client, answer: Answer) -> AnswerCall {
        let request = self.request.clone();
        AnswerCall::new(client, self, Ok(Answer { request, ..answer }))
    }
}
