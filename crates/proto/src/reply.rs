//! What a client is told about its call.

use abide_core::{
    call::{CallError, CallReply},
    codec::Wire,
    event::Outcome,
    limits::InvalidField,
    run::Stage,
};

use crate::{
    error,
    field::{case, missing, word},
    generated::{
        self as wire, numbered_answer::Answer, start_run_response::UpdateAnswer,
        update_run_response::Stage as WireStage,
    },
    worker,
};

impl From<CallReply> for Answer {
    fn from(reply: CallReply) -> Self {
        match reply {
            CallReply::Started { run, started } => Self::Started(wire::StartRunResponse {
                run: run.to_wire(),
                started,
                update_answer: None,
            }),
            CallReply::StartedWithUpdate { run, started, update } => {
                Self::Started(wire::StartRunResponse {
                    run: run.to_wire(),
                    started,
                    update_answer: Some(update_answer(*update)),
                })
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
            CallReply::Description(shown) => Self::Description((*shown).into()),
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
        Answer::Started(wire::StartRunResponse { run, started, update_answer }) => {
            let run = word("run", run)?;
            let update = match update_answer {
                None => return Ok(CallReply::Started { run, started }),
                Some(UpdateAnswer::Update(update)) => Ok(from_wire(Answer::Update(update))?),
                Some(UpdateAnswer::UpdateError(detail)) => Err(error::from_detail(detail)),
            };
            CallReply::StartedWithUpdate { run, started, update: Box::new(update) }
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
        Answer::Description(shown) => CallReply::Description(Box::new(shown.try_into()?)),
        Answer::Error(_)
        | Answer::History(_)
        | Answer::Runs(_)
        | Answer::Count(_)
        | Answer::Waits(_)
        | Answer::Nodes(_) => return Err(InvalidField::new("answer", "is not that of a call")),
    })
}

/// The answer to an update that came with a start.
fn update_answer(update: Result<CallReply, CallError>) -> UpdateAnswer {
    let answer =
        update.map(Answer::from).unwrap_or_else(|failed| Answer::Error(error::to_detail(failed)));
    match answer {
        Answer::Update(update) => UpdateAnswer::Update(update),
        Answer::Error(detail) => UpdateAnswer::UpdateError(detail),
        _ => UpdateAnswer::UpdateError(error::to_detail(error::misplaced_reply())),
    }
}

impl From<Stage> for WireStage {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Admitted => Self::Admitted(Default::default()),
            Stage::Accepted => Self::Accepted(Default::default()),
            Stage::Completed(outcome) => Self::Completed(outcome.to_wire()),
            Stage::CompletedIn(run) => Self::CompletedIn(run.to_wire()),
            Stage::Rejected(failure) => Self::Rejected(failure.to_wire()),
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
            WireStage::Rejected(failure) => Self::Rejected(word("rejected", failure)?),
        })
    }
}
