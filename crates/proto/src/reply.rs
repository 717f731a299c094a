//! What a client is told about its call.

use abide_core::{call::CallReply, codec::Wire, event::Outcome, limits::InvalidField, run::Stage};

use crate::{
    error,
    field::{case, missing, word},
    generated::{self as wire, numbered_answer::Answer, update_run_response::Stage as WireStage},
    worker,
};

impl From<CallReply> for Answer {
    fn from(reply: CallReply) -> Self {
        match reply {
            CallReply::Started { run, started } => {
                Self::Started(wire::StartRunResponse { run: run.to_wire(), started })
            }
            CallReply::Done { run, repeat } => {
                Self::Done(wire::DoneResponse { run: run.to_wire(), repeat })
            }
            CallReply::Update { run, stage } => Self::Update(wire::UpdateRunResponse {
                run: Some(run.to_wire()),
                stage: Some(stage.into()),
            }),
            CallReply::UpdateRejected(failure) => Self::Update(wire::UpdateRunResponse {
                run: None,
                stage: Some(WireStage::Rejected(failure.to_wire())),
            }),
            CallReply::Query(answer) => {
                Self::Query(wire::QueryRunResponse { outcome: worker::outcome(answer).to_wire() })
            }
            CallReply::Run(run) => Self::Description(run.describe().into()),
            CallReply::Closed { run, how, outcome, next_run } => {
                Self::Closed(wire::AwaitCloseResponse {
                    run: run.to_wire(),
                    how: wire::Close::from(how).into(),
                    outcome: outcome.to_wire(),
                    next_run: next_run.to_wire(),
                })
            }
            CallReply::Waits(waits) => Self::RunWaits(waits.into()),
            CallReply::Alive { cancel_requested } => {
                Self::Reported(wire::ReportAttemptResponse { cancel_requested })
            }
            // Only workers are told these, on their own stream, and the engine itself.
            CallReply::TaskTaken { .. }
            | CallReply::TaskDiscarded
            | CallReply::TaskRefused { .. }
            | CallReply::History { .. } => Self::Error(error::to_detail(error::misplaced_reply())),
        }
    }
}

pub(crate) fn from_wire(answer: Answer) -> Result<CallReply, InvalidField> {
    Ok(match answer {
        Answer::Started(wire::StartRunResponse { run, started }) => {
            CallReply::Started { run: word("run", run)?, started }
        }
        Answer::Done(wire::DoneResponse { run, repeat }) => {
            CallReply::Done { run: word("run", run)?, repeat }
        }
        Answer::Query(wire::QueryRunResponse { outcome }) => match word("outcome", outcome)? {
            Outcome::Completed(result) => CallReply::Query(Ok(result)),
            Outcome::Failed(failure) => CallReply::Query(Err(failure)),
        },
        Answer::Update(wire::UpdateRunResponse { run, stage }) => {
            match stage.ok_or_else(|| missing("stage"))? {
                WireStage::Rejected(failure) => {
                    CallReply::UpdateRejected(word("rejected", failure)?)
                }
                stage => CallReply::Update {
                    run: word("run", run.ok_or_else(|| missing("run"))?)?,
                    stage: stage.try_into()?,
                },
            }
        }
        Answer::Closed(closed) => CallReply::Closed {
            run: word("run", closed.run)?,
            how: case::<_, wire::Close>("how", closed.how)?,
            outcome: word("outcome", closed.outcome)?,
            next_run: word("next_run", closed.next_run)?,
        },
        Answer::Reported(wire::ReportAttemptResponse { cancel_requested }) => {
            CallReply::Alive { cancel_requested }
        }
        Answer::RunWaits(waits) => CallReply::Waits(waits.try_into()?),
        Answer::Error(_)
        | Answer::Description(_)
        | Answer::History(_)
        | Answer::Runs(_)
        | Answer::Count(_)
        | Answer::Waits(_) => return Err(InvalidField::new("answer", "is not that of a call")),
    })
}

impl From<Stage> for WireStage {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Admitted => Self::Admitted(Default::default()),
            Stage::Accepted => Self::Accepted(Default::default()),
            Stage::Completed(outcome) => Self::Completed(outcome.to_wire()),
            Stage::CompletedIn(run) => Self::CompletedIn(run.to_wire()),
        }
    }
}

impl TryFrom<WireStage> for Stage {
    type Error = InvalidField;

    fn try_from(wire: WireStage) -> Result<Self, InvalidField> {
        Ok(match wire {
            WireStage::Admitted(_) => Self::Admitted,
            WireStage::Accepted(_) => Self::Accepted,
            WireStage::Completed(outcome) => {
                Self::Completed(word::<Outcome, _>("completed", outcome)?)
            }
            WireStage::CompletedIn(run) => Self::CompletedIn(word("completed_in", run)?),
            WireStage::Rejected(_) => return Err(InvalidField::new("rejected", "is no stage")),
        })
    }
}
