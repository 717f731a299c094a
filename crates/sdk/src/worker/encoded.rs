//! Encoded payloads on their way in and out of a worker.
//!
//! | what cannot be decoded | what happens |
//! |---|---|
//! | history | the task fails and is retried: with the key, the run goes on |
//! | a signal that no key can help | it is refused, which history records |
//! | an update that code has not seen | it is rejected; nothing of it stays |
//! | a query | its caller gets the failure |
//! | the input of an activity | the attempt is handed back, uncounted, and is given again |
//!
//! While a store or a provider of keys does not answer, tasks are retried and attempts wait. What
//! cannot be encoded is never sent as it is: a task fails, and a result waits until it can be.

use std::{sync::Arc, time::Duration};

use abide_core::{
    codec,
    event::{Event, TaskFailureCause},
    failure::{Failure, FailureKind},
    ids::UpdateId,
    operation::CallError,
    report::{Report, ReportAnswer},
    run::{ActivityGiven, GivenTask},
};
use bytes::Bytes;

use super::{
    attempts::Attempt, history::UnreadLog, notice, shared::WorkerCore, thread_message::TaskLog,
};
use crate::{
    backoff::Backoff,
    codec::{CodecError, CodecProblem, Codecs},
    transport::{AnswerFuture, SessionSender},
};

/// The longest pause between two tries to decode the input of an activity.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Updates that code cannot be asked, each with the reason.
pub(super) type Unasked = Vec<(UpdateId, Failure)>;

impl WorkerCore {
    /// Sends a report with all its payloads encoded. It is in flight when this returns.
    pub(super) fn send(
        &self,
        sender: Arc<dyn SessionSender>,
        report: Report,
    ) -> AnswerFuture<'static, ReportAnswer> {
        if self.codecs.is_empty() {
            return sender.report(report);
        }
        // A task of the runtime, because workflow threads do not wake for I/O.
        let sending = self.runtime.spawn(encoded(self.codecs.clone(), sender, report));
        Box::pin(async move {
            let lost = |error| CallError::Unavailable(format!("the report was not sent: {error}"));
            sending.await.map_err(lost).and_then(|answer| answer)
        })
    }

    /// Decodes what comes with a workflow task. Returns the updates that cannot be decoded, which
    /// are taken from the task.
    pub(super) async fn decode_task(
        &self,
        rows: Vec<Bytes>,
        given: &mut GivenTask,
    ) -> (TaskLog, Unasked) {
        let mut unasked = Unasked::new();
        let decoded = async {
            let mut events = events(rows)?;
            self.codecs.decode_events(&mut events).await?;
            self.codecs.decode_events(&mut given.tail).await?;
            let updates = std::mem::take(&mut given.updates);
            for (update, mut request) in updates {
                match self.codecs.decode_all(&mut request).await {
                    Ok(()) => given.updates.push((update, request)),
                    Err(error) if error.problem() == CodecProblem::Unavailable => {
                        return Err(error.into());
                    }
                    Err(error) => unasked.push((update, unreadable(&error))),
                }
            }
            Ok(events)
        };
        (TaskLog::Decoded(decoded.await), unasked)
    }

    /// Decodes what an attempt of an activity gets. The failure hands the attempt back.
    pub(super) async fn decode_attempt(
        &self,
        attempt: &Attempt,
        given: &mut ActivityGiven,
    ) -> Result<(), Failure> {
        let mut backoff = Backoff::new(LONGEST_WAIT);
        loop {
            let Err(error) = self.codecs.decode_all(given).await else { return Ok(()) };
            if error.problem() != CodecProblem::Unavailable {
                return Err(Failure::hand_back(format!("it cannot begin: {error}")));
            }
            let (name, workflow) = (&given.spec.activity_type, &attempt.token.workflow);
            notice::warn(workflow, format_args!("an attempt of {name} waits: {error}"));
            tokio::select! {
                () = tokio::time::sleep(backoff.step()) => {}
                () = attempt.losing() => return Err(Failure::hand_back(error.to_string())),
            }
        }
    }
}

/// The events of these rows.
pub(super) fn events(rows: Vec<Bytes>) -> Result<Vec<Event>, UnreadLog> {
    let mut events = Vec::new();
    for row in rows {
        events.extend(codec::decode_events(row)?);
    }
    Ok(events)
}

/// The failure of something whose payloads cannot be read.
pub(super) fn unreadable(error: &CodecError) -> Failure {
    Failure::server(FailureKind::Application, format!("its data cannot be decoded: {error}"))
}

async fn encoded(
    codecs: Codecs,
    sender: Arc<dyn SessionSender>,
    mut report: Report,
) -> Result<ReportAnswer, CallError> {
    let Err(error) = codecs.encode_all(&mut report).await else {
        return sender.report(report).await;
    };
    let (workflow, _) = report.place();
    notice::warn(workflow, format_args!("data cannot be encoded: {error}"));
    let refused = error.problem() == CodecProblem::Refused;
    match report {
        Report::CompleteTask(token, _) => {
            let cause = match refused {
                true => TaskFailureCause::BadCommand,
                false => TaskFailureCause::WorkerFailure,
            };
            let report = Report::FailTask { token, cause, failure: unsent(&error), blocked: None };
            sender.report(report).await?;
            Err(CallError::NoAnswer(error.to_string()))
        }
        Report::FailTask { token, cause, failure: _, blocked } => {
            let report = Report::FailTask { token, cause, failure: unsent(&error), blocked };
            sender.report(report).await
        }
        Report::AnswerQuery(token, _) => {
            sender.report(Report::AnswerQuery(token, Err(unsent(&error)))).await
        }
        Report::ResolveActivity(..) | Report::Heartbeat(..) if refused => {
            Err(CallError::Invalid(error.as_invalid()))
        }
        Report::ResolveActivity(..) | Report::Heartbeat(..) => {
            Err(CallError::Unavailable(error.to_string()))
        }
        Report::DetachAttempt(_) | Report::PresentAttempt(..) => sender.report(report).await,
    }
}

/// What is sent instead of something that cannot be encoded.
fn unsent(error: &CodecError) -> Failure {
    Failure::server(FailureKind::Application, format!("its data cannot be encoded: {error}"))
}
