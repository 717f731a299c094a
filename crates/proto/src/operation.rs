//! All operations of clients and operators and their answers: which message is which. Single calls,
//! the stream of calls, and calls between nodes share it.

use abide_core::{
    batch::{ListBatches, StartBatch, StopBatch},
    limits::InvalidField,
    operation::{
        AnyAnswer, AnyOperation, AwaitClose, AwaitUpdate, AwaitWaits, CallError, Cancel,
        ChangeSchedule, CountRuns, CreateSchedule, CreateSearchAttribute, Delete, DeleteSchedule,
        DeleteSearchAttribute, Describe, DescribeSchedule, History, ListNodes, ListRuns,
        ListSchedules, ListSearchAttributes, ListWaits, Pause, Query, ReadOperation, Repair,
        ReportAttempt, RescheduleTimer, Reset, RunOperation, Signal, Start, Terminate, Unpause,
        Update,
    },
    tally::{TallyRuns, TallyWaits},
};

use crate::{
    error,
    generated::{numbered_answer::Answer, numbered_call::Call as Asked},
};

/// The wire form of an operation.
///
/// # Errors
/// An operation that only nodes ask of each other has no form here.
pub fn operation_to_wire(operation: AnyOperation) -> Result<Asked, InvalidField> {
    match operation {
        AnyOperation::Run(operation) => run_to_wire(*operation),
        AnyOperation::Read(operation) => Ok(read_to_wire(*operation)),
    }
}

fn run_to_wire(operation: RunOperation) -> Result<Asked, InvalidField> {
    Ok(match operation {
        RunOperation::Start(asked) => Asked::Start((*asked).into()),
        RunOperation::Signal(asked) => Asked::Signal(asked.into()),
        RunOperation::Cancel(asked) => Asked::Cancel(asked.into()),
        RunOperation::Terminate(asked) => Asked::Terminate(asked.into()),
        RunOperation::Pause(asked) => Asked::Pause(asked.into()),
        RunOperation::Unpause(asked) => Asked::Unpause(asked.into()),
        RunOperation::RescheduleTimer(asked) => Asked::RescheduleTimer(asked.into()),
        RunOperation::Repair(asked) => Asked::Repair(asked.into()),
        RunOperation::Update(asked) => Asked::Update(asked.into()),
        RunOperation::AwaitUpdate(asked) => Asked::AwaitUpdate(asked.into()),
        RunOperation::Query(asked) => Asked::Query(asked.into()),
        RunOperation::Describe(asked) => Asked::Describe(asked.into()),
        RunOperation::AwaitClose(asked) => Asked::AwaitClose(asked.into()),
        RunOperation::AwaitWaits(asked) => Asked::AwaitWaits(asked.into()),
        RunOperation::ReportAttempt(asked) => Asked::ReportAttempt(asked.into()),
        RunOperation::Delete(asked) => Asked::Delete(asked.into()),
        RunOperation::Reset(asked) => Asked::Reset((*asked).into()),
        RunOperation::CreateSchedule(asked) => Asked::CreateSchedule((*asked).into()),
        RunOperation::ChangeSchedule(asked) => Asked::ChangeSchedule((*asked).into()),
        RunOperation::DeleteSchedule(asked) => Asked::DeleteSchedule(asked.into()),
        RunOperation::DescribeSchedule(asked) => Asked::DescribeSchedule(asked.into()),
        RunOperation::AwaitEvents(_) => {
            return Err(InvalidField::new("operation", "is one of nodes: follow the history"));
        }
    })
}

fn read_to_wire(operation: ReadOperation) -> Asked {
    match operation {
        ReadOperation::History(asked) => Asked::History(asked.into()),
        ReadOperation::ListRuns(asked) => Asked::ListRuns(asked.into()),
        ReadOperation::CountRuns(asked) => Asked::CountRuns(asked.into()),
        ReadOperation::ListWaits(asked) => Asked::ListWaits(asked.into()),
        ReadOperation::ListNodes(asked) => Asked::ListNodes(asked.into()),
        ReadOperation::TallyRuns(asked) => Asked::TallyRuns(asked.into()),
        ReadOperation::TallyWaits(asked) => Asked::TallyWaits(asked.into()),
        ReadOperation::CreateSearchAttribute(asked) => Asked::CreateSearchAttribute(asked.into()),
        ReadOperation::ListSearchAttributes(asked) => Asked::ListSearchAttributes(asked.into()),
        ReadOperation::DeleteSearchAttribute(asked) => Asked::DeleteSearchAttribute(asked.into()),
        ReadOperation::ListSchedules(asked) => Asked::ListSchedules(asked.into()),
        ReadOperation::StartBatch(asked) => Asked::StartBatch(asked.into()),
        ReadOperation::StopBatch(asked) => Asked::StopBatch(asked.into()),
        ReadOperation::ListBatches(asked) => Asked::ListBatches(asked.into()),
    }
}

/// Reads the operation in a message.
pub fn operation_from_wire(asked: Asked) -> Result<AnyOperation, InvalidField> {
    Ok(match asked {
        Asked::Start(asked) => Start::try_from(asked)?.into(),
        Asked::Signal(asked) => Signal::try_from(asked)?.into(),
        Asked::Cancel(asked) => Cancel::try_from(asked)?.into(),
        Asked::Terminate(asked) => Terminate::try_from(asked)?.into(),
        Asked::Pause(asked) => Pause::try_from(asked)?.into(),
        Asked::Unpause(asked) => Unpause::try_from(asked)?.into(),
        Asked::RescheduleTimer(asked) => RescheduleTimer::try_from(asked)?.into(),
        Asked::Repair(asked) => Repair::try_from(asked)?.into(),
        Asked::Update(asked) => Update::try_from(asked)?.into(),
        Asked::AwaitUpdate(asked) => AwaitUpdate::try_from(asked)?.into(),
        Asked::Query(asked) => Query::try_from(asked)?.into(),
        Asked::Describe(asked) => Describe::try_from(asked)?.into(),
        Asked::AwaitClose(asked) => AwaitClose::try_from(asked)?.into(),
        Asked::AwaitWaits(asked) => AwaitWaits::try_from(asked)?.into(),
        Asked::ReportAttempt(asked) => ReportAttempt::try_from(asked)?.into(),
        Asked::History(asked) => History::try_from(asked)?.into(),
        Asked::ListRuns(asked) => ListRuns::try_from(asked)?.into(),
        Asked::CountRuns(asked) => CountRuns::try_from(asked)?.into(),
        Asked::ListWaits(asked) => ListWaits::try_from(asked)?.into(),
        Asked::ListNodes(asked) => ListNodes::try_from(asked)?.into(),
        Asked::TallyRuns(asked) => TallyRuns::try_from(asked)?.into(),
        Asked::TallyWaits(asked) => TallyWaits::try_from(asked)?.into(),
        Asked::CreateSearchAttribute(asked) => CreateSearchAttribute::try_from(asked)?.into(),
        Asked::ListSearchAttributes(asked) => ListSearchAttributes::try_from(asked)?.into(),
        Asked::DeleteSearchAttribute(asked) => DeleteSearchAttribute::try_from(asked)?.into(),
        Asked::Delete(asked) => Delete::try_from(asked)?.into(),
        Asked::Reset(asked) => Reset::try_from(asked)?.into(),
        Asked::CreateSchedule(asked) => CreateSchedule::try_from(asked)?.into(),
        Asked::ChangeSchedule(asked) => ChangeSchedule::try_from(asked)?.into(),
        Asked::DeleteSchedule(asked) => DeleteSchedule::try_from(asked)?.into(),
        Asked::DescribeSchedule(asked) => DescribeSchedule::try_from(asked)?.into(),
        Asked::ListSchedules(asked) => ListSchedules::try_from(asked)?.into(),
        Asked::StartBatch(asked) => StartBatch::try_from(asked)?.into(),
        Asked::StopBatch(asked) => StopBatch::try_from(asked)?.into(),
        Asked::ListBatches(asked) => ListBatches::try_from(asked)?.into(),
    })
}

/// The wire form of an answer.
pub fn answer_to_wire(answer: Result<AnyAnswer, CallError>) -> Answer {
    match answer {
        Err(failed) => Answer::Error(error::to_detail(failed)),
        Ok(AnyAnswer::Started(answer)) => Answer::Started(answer.into()),
        Ok(AnyAnswer::Done(answer)) => Answer::Done(answer.into()),
        Ok(AnyAnswer::Update(answer)) => Answer::Update(answer.into()),
        Ok(AnyAnswer::Query(answer)) => Answer::Query(answer.into()),
        Ok(AnyAnswer::Description(answer)) => Answer::Description(answer.into()),
        Ok(AnyAnswer::Closed(answer)) => Answer::Closed(answer.into()),
        Ok(AnyAnswer::RunWaits(answer)) => Answer::RunWaits(answer.into()),
        Ok(AnyAnswer::Alive(answer)) => Answer::Reported(answer.into()),
        Ok(AnyAnswer::History(answer)) => Answer::History(answer.into()),
        Ok(AnyAnswer::Runs(answer)) => Answer::Runs(answer.into()),
        Ok(AnyAnswer::Count(answer)) => Answer::Count(answer.into()),
        Ok(AnyAnswer::Waits(answer)) => Answer::Waits(answer.into()),
        Ok(AnyAnswer::Nodes(answer)) => Answer::Nodes(answer.into()),
        Ok(AnyAnswer::RunTally(answer)) => Answer::RunTally(answer.into()),
        Ok(AnyAnswer::WaitTally(answer)) => Answer::WaitTally(answer.into()),
        Ok(AnyAnswer::SearchAttributes(answer)) => Answer::SearchAttributes(answer.into()),
        Ok(AnyAnswer::Schedule(answer)) => Answer::Schedule(answer.into()),
        Ok(AnyAnswer::Schedules(answer)) => Answer::Schedules(answer.into()),
        Ok(AnyAnswer::Batches(answer)) => Answer::Batches(answer.into()),
        // Only nodes ask each other for events, in a form of their own.
        Ok(AnyAnswer::Events(_)) => Answer::Error(error::to_detail(error::misplaced_answer())),
    }
}

/// Reads an answer or an error.
pub fn answer_from_wire(answer: Answer) -> Result<AnyAnswer, CallError> {
    read_answer(answer).map_err(error::unreadable_answer)?
}

fn read_answer(answer: Answer) -> Result<Result<AnyAnswer, CallError>, InvalidField> {
    Ok(Ok(match answer {
        Answer::Error(detail) => return Ok(Err(error::from_detail(detail))),
        Answer::Started(answer) => AnyAnswer::Started(answer.try_into()?),
        Answer::Done(answer) => AnyAnswer::Done(answer.try_into()?),
        Answer::Update(answer) => AnyAnswer::Update(answer.try_into()?),
        Answer::Query(answer) => AnyAnswer::Query(answer.try_into()?),
        Answer::Description(answer) => AnyAnswer::Description(Box::new(answer.try_into()?)),
        Answer::Closed(answer) => AnyAnswer::Closed(answer.try_into()?),
        Answer::RunWaits(answer) => AnyAnswer::RunWaits(answer.try_into()?),
        Answer::Reported(answer) => AnyAnswer::Alive(answer.into()),
        Answer::History(answer) => AnyAnswer::History(answer.try_into()?),
        Answer::Runs(answer) => AnyAnswer::Runs(answer.try_into()?),
        Answer::Count(answer) => AnyAnswer::Count(answer.into()),
        Answer::Waits(answer) => AnyAnswer::Waits(answer.try_into()?),
        Answer::Nodes(answer) => AnyAnswer::Nodes(answer.try_into()?),
        Answer::RunTally(answer) => AnyAnswer::RunTally(answer.try_into()?),
        Answer::WaitTally(answer) => AnyAnswer::WaitTally(answer.try_into()?),
        Answer::SearchAttributes(answer) => AnyAnswer::SearchAttributes(answer.try_into()?),
        Answer::Schedule(answer) => AnyAnswer::Schedule(Box::new(answer.try_into()?)),
        Answer::Schedules(answer) => AnyAnswer::Schedules(answer.try_into()?),
        Answer::Batches(answer) => AnyAnswer::Batches(answer.try_into()?),
    }))
}
