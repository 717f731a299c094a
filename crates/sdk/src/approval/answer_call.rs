//! An answer on its way from a client to the run that asks.

use std::future::IntoFuture;

use super::{Answer, Receipt, WaitingRequest};
use crate::{
    Error,
    client::{Client, ClientError, Untyped, WorkflowHandle},
    future::BoxFuture,
    payload::{self, PayloadError},
};

/// An answer to a [`WaitingRequest`]. Await it for its receipt.
///
/// A refusal is an [`UpdateRejected`](ClientError::UpdateRejected) error, or an
/// [`UpdateFailed`](ClientError::UpdateFailed) error if the request records refusals; see
/// [`Refusal::of`](super::Refusal::of).
#[must_use = "nothing is answered until this is awaited"]
pub struct AnswerCall {
    run: WorkflowHandle<Untyped>,
    update: String,
    answer: Result<Answer, Error>,
}

impl AnswerCall {
    pub(super) fn new(
        client: &Client,
        request: &WaitingRequest,
        answer: Result<Answer, Error>,
    ) -> Self {
        let run = client.handle_untyped(request.workflow.clone()).run(request.run);
        Self { run, update: request.update.clone(), answer }
    }

    /// Adds a role of the approver.
    pub fn role(self, role: impl Into<String>) -> Self {
        Self { answer: self.answer.map(|answer| answer.role(role)), ..self }
    }

    /// Sets a comment, such as the reason. It has at most 16 KiB.
    pub fn comment(self, comment: impl Into<String>) -> Self {
        Self { answer: self.answer.map(|answer| answer.comment(comment)), ..self }
    }

    /// Sets the idempotency key: a repeated answer with the same key changes nothing and gets the
    /// receipt of the first.
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { answer: self.answer.map(|answer| answer.key(key)), ..self }
    }

    async fn send(self) -> Result<Receipt, ClientError> {
        let answer =
            self.answer.map_err(|error| PayloadError::new(error.to_string()).of("choice"))?;
        let receipt = self.run.update_untyped(self.update, payload::encode(&answer)?).await?;
        Ok(payload::decode(&receipt)?)
    }
}

impl IntoFuture for AnswerCall {
    type Output = Result<Receipt, ClientError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl std::fmt::Debug for AnswerCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { run, answer, .. } = self;
        let mut shown = f.debug_struct("AnswerCall");
        shown.field("run", run).field("answer", answer).finish_non_exhaustive()
    }
}
