//! Answers to clients and operators, as messages.

use abide_core::{
    codec::Wire,
    event::UpdateOutcome,
    limits::InvalidField,
    operation::{Alive, Closed, Count, Done, Nodes, QueryAnswer, Reported, Started, UpdateAnswer},
    run::{Description, Stage},
};

use crate::{
    error,
    field::{case, missing, parts, word},
    generated::{
        self as wire, start_run_response::UpdateAnswer as WithStart,
        update_run_response::Stage as WireStage,
    },
    worker,
};

impl From<Started> for wire::StartRunResponse {
    fn from(answer: Started) -> Self {
        let Started { run, started, update } = answer;
        let update = update.map(|update| match update {
            Ok(answer) => WithStart::Update(answer.into()),
            Err(failed) => WithStart::UpdateError(error::to_detail(failed)),
        });
        Self { run: run.to_wire(), started, update_answer: update }
    }
}

impl TryFrom<wire::StartRunResponse> for Started {
    type Error = InvalidField;

    fn try_from(wire: wire::StartRunResponse) -> Result<Self, InvalidField> {
        let wire::StartRunResponse { run, started, update_answer } = wire;
        let update = match update_answer {
            None => None,
            Some(WithStart::Update(answer)) => Some(Ok(answer.try_into()?)),
            Some(WithStart::UpdateError(detail)) => Some(Err(error::from_detail(detail))),
        };
        Ok(Self { run: word("run", run)?, started, update })
    }
}

impl From<Done> for wire::DoneResponse {
    fn from(Done { run, repeat, fire_at }: Done) -> Self {
        Self { run: run.to_wire(), repeat, fire_at: fire_at.to_wire() }
    }
}

impl TryFrom<wire::DoneResponse> for Done {
    type Error = InvalidField;

    fn try_from(
        wire::DoneResponse { run, repeat, fire_at }: wire::DoneResponse,
    ) -> Result<Self, InvalidField> {
        Ok(Self { run: word("run", run)?, repeat, fire_at: word("fire_at", fire_at)? })
    }
}

impl From<UpdateAnswer> for wire::UpdateRunResponse {
    fn from(answer: UpdateAnswer) -> Self {
        let (run, stage) = match answer {
            UpdateAnswer::Reached { run, stage } => (Some(run.to_wire()), stage.into()),
            UpdateAnswer::Rejected(failure) => (None, WireStage::Rejected(failure.to_wire())),
        };
        Self { run, stage: Some(stage) }
    }
}

impl TryFrom<wire::UpdateRunResponse> for UpdateAnswer {
    type Error = InvalidField;

    fn try_from(wire: wire::UpdateRunResponse) -> Result<Self, InvalidField> {
        let wire::UpdateRunResponse { run, stage } = wire;
        Ok(match stage.ok_or_else(|| missing("stage"))? {
            WireStage::Rejected(failure) => Self::Rejected(word("rejected", failure)?),
            stage => Self::Reached {
                run: word("run", run.ok_or_else(|| missing("run"))?)?,
                stage: stage.try_into()?,
            },
        })
    }
}

impl From<QueryAnswer> for wire::QueryRunResponse {
    fn from(QueryAnswer(answer): QueryAnswer) -> Self {
        Self { outcome: worker::outcome(answer).to_wire() }
    }
}

impl TryFrom<wire::QueryRunResponse> for QueryAnswer {
    type Error = InvalidField;

    fn try_from(wire: wire::QueryRunResponse) -> Result<Self, InvalidField> {
        Ok(Self(match word("outcome", wire.outcome)? {
            UpdateOutcome::Completed(result) => Ok(result),
            UpdateOutcome::Failed(failure) => Err(failure),
        }))
    }
}

impl From<Box<Description>> for wire::RunDescription {
    fn from(shown: Box<Description>) -> Self {
        (*shown).into()
    }
}

impl From<Closed> for wire::AwaitCloseResponse {
    fn from(Closed { run, how, outcome, next_run }: Closed) -> Self {
        Self {
            run: run.to_wire(),
            how: wire::Close::from(how).into(),
            outcome: outcome.to_wire(),
            next_run: next_run.to_wire(),
        }
    }
}

impl TryFrom<wire::AwaitCloseResponse> for Closed {
    type Error = InvalidField;

    fn try_from(wire: wire::AwaitCloseResponse) -> Result<Self, InvalidField> {
        Ok(Self {
            run: word("run", wire.run)?,
            how: case::<_, wire::Close>("how", wire.how)?,
            outcome: word("outcome", wire.outcome)?,
            next_run: word("next_run", wire.next_run)?,
        })
    }
}

impl From<Alive> for wire::ReportAttemptResponse {
    fn from(Alive { cancel_requested }: Alive) -> Self {
        Self { cancel_requested }
    }
}

impl From<wire::ReportAttemptResponse> for Alive {
    fn from(wire: wire::ReportAttemptResponse) -> Self {
        Self { cancel_requested: wire.cancel_requested }
    }
}

/// The result of an attempt is only acknowledged; the reply to a heartbeat says whether to go on.
impl From<Reported> for wire::ReportAttemptResponse {
    fn from(answer: Reported) -> Self {
        match answer {
            Reported::Ended(_) => Self::default(),
            Reported::Alive(alive) => alive.into(),
        }
    }
}

impl From<Count> for wire::CountRunsResponse {
    fn from(Count(count): Count) -> Self {
        Self { count }
    }
}

impl From<wire::CountRunsResponse> for Count {
    fn from(wire: wire::CountRunsResponse) -> Self {
        Self(wire.count)
    }
}

impl From<Nodes> for wire::ListNodesResponse {
    fn from(Nodes(nodes): Nodes) -> Self {
        Self { nodes: nodes.into_iter().map(Into::into).collect() }
    }
}

impl TryFrom<wire::ListNodesResponse> for Nodes {
    type Error = InvalidField;

    fn try_from(wire: wire::ListNodesResponse) -> Result<Self, InvalidField> {
        parts("nodes", wire.nodes).map(Self)
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
                Self::Completed(word::<UpdateOutcome, _>("completed", outcome)?)
            }
            WireStage::CompletedIn(run) => Self::CompletedIn(word("completed_in", run)?),
            WireStage::Rejected(failure) => Self::Rejected(word("rejected", failure)?),
        })
    }
}
