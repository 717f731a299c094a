//! Messages between a worker and a server: tokens, completions, tasks, acknowledgements.

use abide_core::{
    attempt::ActivityToken,
    codec::{self, Wire},
    dispatch::{Dispatch, QueueKey, WorkKind},
    event::UpdateOutcome,
    failure::Failure,
    ids::{SessionId, ShardId},
    limits::InvalidField,
    operation::{CallError, QueryRequest},
    payload::Payloads,
    report::{QueryToken, Report, ReportAnswer, TaskCompletion, TaskToken},
    run::{ActivityGiven, GivenTask, Resolution},
};

use crate::{
    error,
    field::{Inside, case, enumeration, missing, part, parts, unreadable, word},
    generated::{
        self as wire, acknowledgement::Acknowledgement as Acknowledged, completion::Completion,
        resolve_activity::Resolution as WireResolution, task::Task as WireTask,
    },
};

enumeration!(WorkKind, WorkKind { Workflow, Activity });

macro_rules! token {
    ($name:ident { $($word:ident),* } { $($plain:ident),* }) => {
        impl From<$name> for wire::$name {
            fn from(token: $name) -> Self {
                let $name { $($word,)* $($plain,)* } = token;
                Self { $($word: $word.to_wire(),)* $($plain,)* }
            }
        }

        impl TryFrom<wire::$name> for $name {
            type Error = InvalidField;

            fn try_from(wire: wire::$name) -> Result<Self, InvalidField> {
                let wire::$name { $($word,)* $($plain,)* } = wire;
                Ok(Self { $($word: word(stringify!($word), $word)?,)* $($plain,)* })
            }
        }
    };
}

token!(TaskToken { workflow, run, start } {});
token!(QueryToken { workflow, run } { ticket, attempt });
token!(ActivityToken { workflow, run } { scheduled, start });

/// The wire form of a credit.
pub fn credit_to_wire(queue: QueueKey, credits: usize) -> wire::Credit {
    wire::Credit {
        namespace: queue.namespace.to_wire(),
        queue: queue.queue,
        kind: wire::WorkKind::from(queue.kind).into(),
        credits: u32::try_from(credits).unwrap_or(u32::MAX),
    }
}

/// Reads the queue and the number of a credit.
pub fn credit_from_wire(wire: wire::Credit) -> Result<(QueueKey, usize), InvalidField> {
    let queue = QueueKey {
        namespace: wire.namespace.into(),
        queue: wire.queue,
        kind: case::<_, wire::WorkKind>("kind", wire.kind)?,
    };
    Ok((queue, usize::try_from(wire.credits).unwrap_or(usize::MAX)))
}

/// The wire form of a worker's report.
pub fn report_to_wire(report: Report) -> Completion {
    match report {
        Report::CompleteTask(token, completion) => complete_task(token, *completion),
        Report::FailTask { token, cause, failure, blocked } => {
            Completion::FailTask(wire::FailTask {
                token: Some(token.into()),
                cause: cause.to_wire(),
                failure: failure.to_wire(),
                blocked: blocked.to_wire(),
            })
        }
        Report::AnswerQuery(token, answer) => {
            let (token, outcome) = (Some(token.into()), outcome(answer).to_wire());
            Completion::AnswerQuery(wire::AnswerQuery { token, outcome })
        }
        Report::ResolveActivity(token, resolution) => resolve_activity(token, resolution),
        Report::Heartbeat(token, details) => {
            let (token, details) = (Some(token.into()), details.to_wire());
            Completion::Heartbeat(wire::HeartbeatActivity { token, details })
        }
        Report::PresentAttempt(token, _) => Completion::PresentAttempt(token.into()),
        Report::DetachAttempt(token) => Completion::DetachAttempt(token.into()),
    }
}

/// Reads a worker's report.
pub fn report_from_wire(wire: Completion, session: &SessionId) -> Result<Report, InvalidField> {
    Ok(match wire {
        Completion::CompleteTask(wire) => Report::CompleteTask(
            part("token", wire.token)?,
            Box::new(TaskCompletion {
                commands: parts("commands", wire.commands)?,
                flags: word("flags", wire.flags)?,
                sdk_metadata: wire.sdk_metadata,
                force_next: wire.force_next,
                eager_activities: usize::try_from(wire.eager_activities).unwrap_or(usize::MAX),
            }),
        ),
        Completion::FailTask(wire) => Report::FailTask {
            token: part("token", wire.token)?,
            cause: word("cause", wire.cause)?,
            failure: word("failure", wire.failure)?,
            blocked: word("blocked", wire.blocked)?,
        },
        Completion::AnswerQuery(wire) => {
            let token = part("token", wire.token)?;
            match word("outcome", wire.outcome)? {
                UpdateOutcome::Completed(result) => Report::AnswerQuery(token, Ok(result)),
                UpdateOutcome::Failed(failure) => Report::AnswerQuery(token, Err(failure)),
            }
        }
        Completion::ResolveActivity(wire) => {
            let resolution = wire.resolution.ok_or_else(|| missing("resolution"))?;
            let resolution = match resolution {
                WireResolution::Completed(result) => {
                    Resolution::Completed(word("completed", result)?)
                }
                WireResolution::Failed(failure) => Resolution::Failed(word("failed", failure)?),
                WireResolution::Cancelled(details) => {
                    Resolution::Cancelled(word("cancelled", details)?)
                }
            };
            Report::ResolveActivity(part("token", wire.token)?, resolution)
        }
        Completion::Heartbeat(wire) => {
            Report::Heartbeat(part("token", wire.token)?, word("details", wire.details)?)
        }
        Completion::PresentAttempt(token) => {
            Report::PresentAttempt(part("token", Some(token))?, session.clone())
        }
        Completion::DetachAttempt(token) => Report::DetachAttempt(part("token", Some(token))?),
    })
}

fn complete_task(token: TaskToken, completion: TaskCompletion) -> Completion {
    let TaskCompletion { commands, flags, sdk_metadata, force_next, eager_activities } = completion;
    Completion::CompleteTask(wire::CompleteTask {
        token: Some(token.into()),
        commands: commands.into_iter().map(Into::into).collect(),
        flags: flags.to_wire(),
        sdk_metadata,
        force_next,
        eager_activities: u32::try_from(eager_activities).unwrap_or(u32::MAX),
    })
}

fn resolve_activity(token: ActivityToken, resolution: Resolution) -> Completion {
    let resolution = match resolution {
        Resolution::Completed(result) => WireResolution::Completed(result.to_wire()),
        Resolution::Failed(failure) => WireResolution::Failed(failure.to_wire()),
        Resolution::Cancelled(details) => WireResolution::Cancelled(details.to_wire()),
    };
    Completion::ResolveActivity(wire::ResolveActivity {
        token: Some(token.into()),
        resolution: Some(resolution),
    })
}

pub(crate) fn outcome(result: Result<Payloads, Failure>) -> UpdateOutcome {
    match result {
        Ok(result) => UpdateOutcome::Completed(result),
        Err(failure) => UpdateOutcome::Failed(failure),
    }
}

/// The wire form of an acknowledgement.
pub fn acknowledgement_to_wire(result: Result<ReportAnswer, CallError>) -> Acknowledged {
    match result {
        Err(error) => Acknowledged::Error(error::to_detail(error)),
        Ok(ReportAnswer::TaskTaken { completed }) => Acknowledged::TaskTaken(completed),
        Ok(ReportAnswer::TaskDiscarded) => Acknowledged::TaskDiscarded(Default::default()),
        Ok(ReportAnswer::TaskRefused { cause, message }) => {
            Acknowledged::TaskRefused(wire::TaskRefused { cause: cause.to_wire(), message })
        }
        Ok(ReportAnswer::Alive { cancel_requested }) => {
            Acknowledged::AliveCancelRequested(cancel_requested)
        }
        Ok(ReportAnswer::Done { run, repeat }) => {
            Acknowledged::Done(wire::DoneAcknowledgement { run: run.to_wire(), repeat })
        }
    }
}

/// Reads an acknowledgement or an error.
pub fn acknowledgement_from_wire(wire: Acknowledged) -> Result<ReportAnswer, CallError> {
    let reply = match wire {
        Acknowledged::Error(detail) => return Err(error::from_detail(detail)),
        Acknowledged::TaskTaken(completed) => Ok(ReportAnswer::TaskTaken { completed }),
        Acknowledged::TaskDiscarded(_) => Ok(ReportAnswer::TaskDiscarded),
        Acknowledged::TaskRefused(wire::TaskRefused { cause, message }) => {
            word("cause", cause).map(|cause| ReportAnswer::TaskRefused { cause, message })
        }
        Acknowledged::AliveCancelRequested(cancel_requested) => {
            Ok(ReportAnswer::Alive { cancel_requested })
        }
        Acknowledged::Done(wire::DoneAcknowledgement { run, repeat }) => {
            word("run", run).map(|run| ReportAnswer::Done { run, repeat })
        }
    };
    reply.map_err(error::unreadable_answer)
}

impl From<Dispatch> for wire::Task {
    fn from(dispatch: Dispatch) -> Self {
        let task = match dispatch {
            Dispatch::Workflow { token, given, last_event, recent } => {
                let GivenTask { start: _, attempt, previous, tail, updates, timeout } = given;
                let update = |(update, request): (abide_core::ids::UpdateId, _)| {
                    let request = abide_core::event::UpdateRequest::to_wire(&request);
                    wire::GivenUpdate { update: update.to_wire(), request: Some(request) }
                };
                WireTask::Workflow(wire::WorkflowTask {
                    token: Some(token.into()),
                    attempt,
                    previous,
                    tail: codec::encode_events(&tail),
                    updates: updates.into_iter().map(update).collect(),
                    timeout: timeout.to_wire(),
                    last_event,
                    recent: recent.map(|rows| wire::LogRows { rows }),
                })
            }
            Dispatch::Activity { token, given, eager } => {
                let ActivityGiven { spec, execution, attempt, scheduled_at, heartbeat } = *given;
                WireTask::Activity(wire::ActivityTask {
                    token: Some(token.into()),
                    spec: spec.to_wire(),
                    execution: execution.to_wire(),
                    attempt,
                    scheduled_at: scheduled_at.to_wire(),
                    heartbeat: heartbeat.to_wire(),
                    eager,
                })
            }
            Dispatch::Query { token, last_event, query } => WireTask::Query(wire::QueryTask {
                token: Some(token.into()),
                last_event,
                name: query.name,
                input: query.input.to_wire(),
                header: query.header.to_wire(),
            }),
        };
        Self { task: Some(task) }
    }
}

impl TryFrom<wire::Task> for Dispatch {
    type Error = InvalidField;

    fn try_from(wire: wire::Task) -> Result<Self, InvalidField> {
        Ok(match wire.task.ok_or_else(|| InvalidField::new("task", "has no known case set"))? {
            WireTask::Workflow(task) => workflow_task(task)?,
            WireTask::Activity(task) => Self::Activity {
                token: part("token", task.token)?,
                given: Box::new(ActivityGiven {
                    spec: word("spec", task.spec)?,
                    execution: task.execution.into(),
                    attempt: task.attempt,
                    scheduled_at: word("scheduled_at", task.scheduled_at)?,
                    heartbeat: word("heartbeat", task.heartbeat)?,
                }),
                eager: task.eager,
            },
            WireTask::Query(task) => Self::Query {
                token: part("token", task.token)?,
                last_event: task.last_event,
                query: QueryRequest {
                    name: task.name,
                    input: word("input", task.input)?,
                    header: word("header", task.header)?,
                },
            },
        })
    }
}

fn workflow_task(task: wire::WorkflowTask) -> Result<Dispatch, InvalidField> {
    let token: TaskToken = part("token", task.token)?;
    let update =
        |wire: wire::GivenUpdate| Ok((wire.update.into(), word("updates.request", wire.request)?));
    let tail = codec::decode_events(task.tail);
    Ok(Dispatch::Workflow {
        given: GivenTask {
            start: token.start,
            attempt: task.attempt,
            previous: task.previous,
            tail: tail.map_err(|error| unreadable(&error).inside("tail"))?,
            updates: task.updates.into_iter().map(update).collect::<Result<_, InvalidField>>()?,
            timeout: word("timeout", task.timeout)?,
        },
        token,
        last_event: task.last_event,
        recent: task.recent.map(|recent| recent.rows),
    })
}

/// Reads the number of a shard.
pub fn shard_from_wire(number: u32) -> Result<ShardId, InvalidField> {
    crate::list::shard("present_attempts", number)
}
