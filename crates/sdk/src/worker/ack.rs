//! Acknowledgements: how the engine answers the reports of a workflow thread.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use abide_core::{
    event::TaskFailureCause,
    failure::{Failure, FailureKind},
    operation::CallError,
    payload::Payloads,
    report::{QueryToken, Report, ReportAnswer, TaskToken},
};
use futures_util::StreamExt;

use super::{notice, oversized, shared::WorkerCore, thread::Acks};
use crate::transport::{AnswerFuture, SessionSender};

/// A report that the engine has not acknowledged yet.
pub(super) struct Ack {
    sender: Arc<dyn SessionSender>,
    /// The task that the report completes; none for other reports.
    answered: Option<TaskToken>,
    reply: AnswerFuture<'static, ReportAnswer>,
}

/// A report that the engine has acknowledged, or whose stream is lost.
pub(super) struct Acknowledged {
    pub(super) sender: Arc<dyn SessionSender>,
    pub(super) answered: Option<TaskToken>,
    pub(super) result: Result<ReportAnswer, CallError>,
}

impl Ack {
    pub(super) fn new(shared: &WorkerCore, sender: Arc<dyn SessionSender>, report: Report) -> Self {
        let answered = match &report {
            Report::CompleteTask(token, _) => Some(token.clone()),
            _ => None,
        };
        let reply = shared.send(Arc::clone(&sender), report);
        Self { sender, answered, reply }
    }

    /// The answer to a query. If it cannot be sent, the caller of the query gets a failure instead.
    pub(super) fn to_query(
        shared: &Arc<WorkerCore>,
        sender: Arc<dyn SessionSender>,
        token: QueryToken,
        name: String,
        answer: Result<Payloads, Failure>,
    ) -> Self {
        let (shared, answering) = (Arc::clone(shared), Arc::clone(&sender));
        let reply = Box::pin(async move {
            let report = Report::AnswerQuery(token.clone(), answer);
            let given = shared.send(Arc::clone(&answering), report).await;
            let Err(CallError::Invalid(problem)) = given else { return given };
            notice::warn(&token.workflow, format_args!("query {name} is not answered: {problem}"));
            let failure = oversized::query_failure(&name, &problem);
            shared.send(answering, Report::AnswerQuery(token, Err(failure))).await
        });
        Self { sender, answered: None, reply }
    }
}

impl Future for Ack {
    type Output = Acknowledged;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Acknowledged> {
        let result = ready!(self.reply.as_mut().poll(context));
        let sender = Arc::clone(&self.sender);
        Poll::Ready(Acknowledged { sender, answered: self.answered.take(), result })
    }
}

impl Acknowledged {
    /// Waits for all acknowledgements. When an engine refuses a completion for good, the task is
    /// reported as failed.
    pub(super) async fn all(shared: &WorkerCore, mut acks: Acks) {
        while let Some(Self { sender, answered, result }) = acks.next().await {
            if let Some(token) = answered
                && let CompletionOutcome::Unfit(failed) = CompletionOutcome::of(&token, result)
            {
                acks.push(Ack::new(shared, sender, *failed));
            }
        }
    }
}

/// The engine's decision on a completion.
pub(super) enum CompletionOutcome {
    /// The run continues from the machine in memory.
    Taken,
    /// The machine is stale and is dropped; the task is dispatched again, or another worker owns
    /// it.
    NotTaken,
    /// No engine accepts the completion. The task must be reported as failed, or it stays open
    /// until its timeout.
    Unfit(Box<Report>),
}

impl CompletionOutcome {
    pub(super) fn of(token: &TaskToken, result: Result<ReportAnswer, CallError>) -> Self {
        let workflow = &token.workflow;
        match result {
            Ok(ReportAnswer::TaskRefused { cause: TaskFailureCause::UnseenInput, .. }) => {
                let what = format_args!("the run stays open: it has new inputs to process");
                notice::debug(workflow, what);
                Self::NotTaken
            }
            Ok(ReportAnswer::TaskRefused { cause, message }) => {
                notice::warn(workflow, format_args!("a task was refused ({cause:?}): {message}"));
                Self::NotTaken
            }
            Ok(ReportAnswer::TaskDiscarded) => Self::NotTaken,
            Ok(_) => Self::Taken,
            Err(CallError::Invalid(invalid)) => {
                notice::warn(workflow, format_args!("a task was refused as invalid: {invalid}"));
                let failure = Failure::server(FailureKind::Application, invalid.to_string());
                Self::Unfit(Box::new(Report::FailTask {
                    token: token.clone(),
                    cause: TaskFailureCause::BadCommand,
                    failure,
                    blocked: None,
                }))
            }
            Err(error) => {
                let what = format_args!("the completion of a task was not accepted: {error}");
                notice::debug(workflow, what);
                Self::NotTaken
            }
        }
    }
}
