//! Messages between nodes, converted to and from their wire form.

use abide_core::{
    codec::{self, Wire},
    dispatch::{QueueKey, Worker},
    ids::{SessionId, ShardId},
    limits::InvalidField,
    operation::{AnyAnswer, AnyOperation, AwaitEvents, CallError, Events, RunOperation},
    report::{Report, ReportAnswer},
};
use abide_engine::peers::PeerMessage;
use abide_proto::{
    generated::{self as wire, peer_answer, peer_call, peer_message::Message, peer_offer},
    operation,
    worker::{self, credit_from_wire, credit_to_wire, shard_from_wire},
};
use abide_shard::message::{EffectKey, Envelope, Mail, Offer, Work};

/// The wire form of an operation for another node.
pub(super) fn operation_to_wire(
    operation: Box<RunOperation>,
) -> Result<peer_call::Call, CallError> {
    if let RunOperation::AwaitEvents(AwaitEvents { target, after }) = *operation {
        let target = Some(target.into());
        return Ok(peer_call::Call::AwaitEvents(wire::PeerAwaitEvents { target, after }));
    }
    let call = Some(operation::operation_to_wire(AnyOperation::Run(operation))?);
    Ok(peer_call::Call::Client(wire::NumberedCall { number: 0, call }))
}

/// The wire form of a worker's report for another node.
pub(super) fn report_to_wire(report: Report) -> peer_call::Call {
    let session = match &report {
        Report::PresentAttempt(_, session) => session.to_string(),
        _ => String::new(),
    };
    let completion = Some(worker::report_to_wire(report));
    let completion = Some(wire::Completion { number: 0, completion });
    peer_call::Call::Worker(wire::PeerCompletion { completion, session })
}

/// A call from another node.
pub(super) enum Called {
    Operation(Box<RunOperation>),
    Report(Box<Report>),
}

/// Reads a call from another node.
pub(super) fn called(call: Option<peer_call::Call>) -> Result<Called, InvalidField> {
    let missing = || InvalidField::new("call", "has no known case set");
    Ok(match call.ok_or_else(missing)? {
        peer_call::Call::Client(call) => {
            let asked = call.call.ok_or_else(missing)?;
            match operation::operation_from_wire(asked)? {
                AnyOperation::Run(operation) => Called::Operation(operation),
                // Every node reads from the store itself.
                AnyOperation::Read(_) => {
                    return Err(InvalidField::new("call", "is not a call between nodes"));
                }
            }
        }
        peer_call::Call::Worker(wire::PeerCompletion { completion, session }) => {
            let completion = completion.and_then(|completion| completion.completion);
            let session = SessionId::from(session);
            let report = worker::report_from_wire(completion.ok_or_else(missing)?, &session)?;
            Called::Report(Box::new(report))
        }
        peer_call::Call::AwaitEvents(wire::PeerAwaitEvents { target, after }) => {
            let target = target.ok_or_else(missing)?.try_into()?;
            Called::Operation(Box::new(AwaitEvents { target, after }.into()))
        }
    })
}

/// The wire form of the answer to an operation.
pub(super) fn answer_to_wire(answer: Result<AnyAnswer, CallError>) -> peer_answer::Answer {
    if let Ok(AnyAnswer::Events(Events { run, last_event, closed })) = answer {
        let run = run.to_wire();
        return peer_answer::Answer::Events(wire::PeerEvents { run, last_event, closed });
    }
    let answer = Some(operation::answer_to_wire(answer));
    peer_answer::Answer::Client(wire::NumberedAnswer { number: 0, answer })
}

/// The wire form of the answer to a worker's report.
pub(super) fn acknowledged_to_wire(answer: Result<ReportAnswer, CallError>) -> peer_answer::Answer {
    let acknowledgement = Some(worker::acknowledgement_to_wire(answer));
    peer_answer::Answer::Worker(wire::Acknowledgement { number: 0, acknowledgement })
}

/// Reads another node's answer to an operation.
pub(super) fn answer_from_wire(answer: peer_answer::Answer) -> Result<AnyAnswer, CallError> {
    match answer {
        peer_answer::Answer::Client(wire::NumberedAnswer { answer, .. }) => {
            operation::answer_from_wire(answer.ok_or_else(unknown)?)
        }
        peer_answer::Answer::Events(wire::PeerEvents { run, last_event, closed }) => {
            Ok(Events { run: word("run", run)?, last_event, closed }.into())
        }
        peer_answer::Answer::Worker(_) => Err(unknown()),
    }
}

/// Reads another node's answer to a worker's report, which may have failed before the engine saw
/// it.
pub(super) fn acknowledged_from_wire(
    answer: peer_answer::Answer,
) -> Result<ReportAnswer, CallError> {
    match answer {
        peer_answer::Answer::Worker(wire::Acknowledgement { acknowledgement, .. }) => {
            worker::acknowledgement_from_wire(acknowledgement.ok_or_else(unknown)?)
        }
        other => answer_from_wire(other).and_then(|_| Err(unknown())),
    }
}

/// The other node sent something that this one does not know.
pub(super) fn unknown() -> CallError {
    CallError::Unavailable("another node sent an unknown answer".into())
}

/// The wire form of a message.
pub(super) fn message_to_wire(message: PeerMessage) -> wire::PeerMessage {
    let message = match message {
        PeerMessage::Mail(shard, Mail::Deliver(envelope)) => Message::Deliver(wire::PeerEffect {
            effect: codec::encode_effect(&envelope.effect),
            key: Some(key_to_wire(shard, envelope.key)),
        }),
        PeerMessage::Mail(shard, Mail::Answered(key, answer)) => {
            Message::Answered(wire::PeerEffectAnswer {
                key: Some(key_to_wire(shard, key)),
                answer: codec::encode_answer(&answer),
            })
        }
        PeerMessage::Mail(shard, Mail::Confirmed(key)) => {
            Message::Confirmed(key_to_wire(shard, key))
        }
        PeerMessage::Mail(shard, Mail::Senseless(key)) => {
            Message::Senseless(key_to_wire(shard, key))
        }
        PeerMessage::Spare { queue, build, credits } => {
            let credit = Some(credit_to_wire(queue, credits));
            Message::Spare(wire::PeerCredit { credit, build: build.to_wire() })
        }
        PeerMessage::Offer(offer) => Message::Offer(offer_to_wire(offer)),
        PeerMessage::Declined(offer) => Message::Declined(offer_to_wire(offer)),
        PeerMessage::Matched(offer, worker) => Message::Matched(match_to_wire(offer, worker)),
        PeerMessage::Unmatched(offer, worker) => Message::Unmatched(match_to_wire(offer, worker)),
        PeerMessage::Dispatch(worker, dispatch) => Message::Dispatch(wire::PeerDispatch {
            worker: Some(worker_to_wire(worker)),
            task: Some((*dispatch).into()),
        }),
        PeerMessage::SessionLost(session) => Message::SessionLost(session.to_wire()),
        PeerMessage::SessionCame(session) => Message::SessionCame(session.to_wire()),
        PeerMessage::Opened(shards) => {
            let shards = shards.into_iter().map(|shard| shard.number().into()).collect();
            Message::Opened(wire::PeerShards { shards })
        }
        PeerMessage::Look => Message::Look(Default::default()),
        PeerMessage::NewBuild(queue, build) => Message::NewBuild(wire::PeerCredit {
            credit: Some(credit_to_wire(queue, 0)),
            build: Some(build.to_wire()),
        }),
    };
    wire::PeerMessage { message: Some(message) }
}

/// Reads a message from another node.
pub(super) fn message_from_wire(wire: wire::PeerMessage) -> Result<PeerMessage, InvalidField> {
    let message = wire.message.ok_or_else(|| InvalidField::new("message", "is unknown"))?;
    Ok(match message {
        Message::Deliver(wire::PeerEffect { key, effect }) => {
            let (shard, key) = key_from_wire(key)?;
            let effect = codec::decode_effect(effect).map_err(|error| unreadable(&error))?;
            PeerMessage::Mail(shard, Mail::Deliver(Box::new(Envelope { key, effect })))
        }
        Message::Answered(wire::PeerEffectAnswer { key, answer }) => {
            let (shard, key) = key_from_wire(key)?;
            let answer = codec::decode_answer(answer).map_err(|error| unreadable(&error))?;
            PeerMessage::Mail(shard, Mail::Answered(key, answer))
        }
        Message::Confirmed(key) => {
            let (shard, key) = key_from_wire(Some(key))?;
            PeerMessage::Mail(shard, Mail::Confirmed(key))
        }
        Message::Senseless(key) => {
            let (shard, key) = key_from_wire(Some(key))?;
            PeerMessage::Mail(shard, Mail::Senseless(key))
        }
        Message::Spare(wire::PeerCredit { credit, build }) => {
            let (queue, credits) = queue_from_wire(credit)?;
            PeerMessage::Spare { queue, build: build.map(Into::into), credits }
        }
        Message::Offer(offer) => PeerMessage::Offer(offer_from_wire(offer)?),
        Message::Declined(offer) => PeerMessage::Declined(offer_from_wire(offer)?),
        Message::Matched(matched) => {
            let (offer, worker) = match_from_wire(matched)?;
            PeerMessage::Matched(offer, worker)
        }
        Message::Unmatched(matched) => {
            let (offer, worker) = match_from_wire(matched)?;
            PeerMessage::Unmatched(offer, worker)
        }
        Message::Dispatch(wire::PeerDispatch { worker, task }) => {
            let task = task.ok_or_else(|| missing("task"))?;
            PeerMessage::Dispatch(worker_from_wire(worker)?, Box::new(task.try_into()?))
        }
        Message::SessionLost(session) => PeerMessage::SessionLost(session.into()),
        Message::SessionCame(session) => PeerMessage::SessionCame(session.into()),
        Message::Opened(wire::PeerShards { shards }) => {
            let shards = shards.into_iter().map(shard_from_wire);
            PeerMessage::Opened(shards.collect::<Result<_, _>>()?)
        }
        Message::Look(_) => PeerMessage::Look,
        Message::NewBuild(wire::PeerCredit { credit, build }) => {
            let build = build.ok_or_else(|| missing("build"))?;
            PeerMessage::NewBuild(queue_from_wire(credit)?.0, build.into())
        }
    })
}

fn key_to_wire(shard: ShardId, key: EffectKey) -> wire::PeerEffectKey {
    wire::PeerEffectKey {
        shard: shard.number().into(),
        workflow: Some(key.workflow.to_wire()),
        run: key.run.to_wire(),
        number: key.number,
    }
}

fn key_from_wire(key: Option<wire::PeerEffectKey>) -> Result<(ShardId, EffectKey), InvalidField> {
    let wire::PeerEffectKey { shard, workflow, run, number } = key.ok_or_else(|| missing("key"))?;
    Ok((
        shard_from_wire(shard)?,
        EffectKey { workflow: word("workflow", workflow)?, run: word("run", run)?, number },
    ))
}

fn offer_to_wire(offer: Offer) -> wire::PeerOffer {
    wire::PeerOffer {
        queue: Some(credit_to_wire(offer.queue, 0)),
        shard: offer.shard.number().into(),
        workflow: Some(offer.workflow.to_wire()),
        run: offer.run.to_wire(),
        work: Some(match offer.work {
            Work::Workflow => peer_offer::Work::Task(Default::default()),
            Work::Activity(scheduled) => peer_offer::Work::Activity(scheduled),
            Work::Query(ticket) => peer_offer::Work::Query(ticket),
        }),
        prefer: offer.prefer.to_wire(),
        except: offer.except.iter().map(ToString::to_string).collect(),
    }
}

fn offer_from_wire(offer: wire::PeerOffer) -> Result<Offer, InvalidField> {
    let work = match offer.work.ok_or_else(|| missing("work"))? {
        peer_offer::Work::Task(_) => Work::Workflow,
        peer_offer::Work::Activity(scheduled) => Work::Activity(scheduled),
        peer_offer::Work::Query(ticket) => Work::Query(ticket),
    };
    Ok(Offer {
        queue: queue_from_wire(offer.queue)?.0,
        shard: shard_from_wire(offer.shard)?,
        workflow: word("workflow", offer.workflow)?,
        run: word("run", offer.run)?,
        work,
        prefer: offer.prefer.map(Into::into),
        except: offer.except.into_iter().map(Into::into).collect(),
    })
}

fn worker_to_wire(worker: Worker) -> wire::PeerWorker {
    let Worker { session, identity, build } = worker;
    wire::PeerWorker { session: session.to_wire(), identity, build: build.to_wire() }
}

fn worker_from_wire(worker: Option<wire::PeerWorker>) -> Result<Worker, InvalidField> {
    let wire::PeerWorker { session, identity, build } = worker.ok_or_else(|| missing("worker"))?;
    Ok(Worker { session: session.into(), identity, build: build.map(Into::into) })
}

fn match_to_wire(offer: Offer, worker: Worker) -> wire::PeerMatch {
    wire::PeerMatch { offer: Some(offer_to_wire(offer)), worker: Some(worker_to_wire(worker)) }
}

fn match_from_wire(matched: wire::PeerMatch) -> Result<(Offer, Worker), InvalidField> {
    let offer = matched.offer.ok_or_else(|| missing("offer"))?;
    Ok((offer_from_wire(offer)?, worker_from_wire(matched.worker)?))
}

fn queue_from_wire(queue: Option<wire::Credit>) -> Result<(QueueKey, usize), InvalidField> {
    credit_from_wire(queue.ok_or_else(|| missing("queue"))?)
}

fn word<T: Wire<W>, W>(field: &str, wire: W) -> Result<T, InvalidField> {
    T::from_wire(wire).map_err(|error| InvalidField::new(field, error.to_string()))
}

fn missing(field: &str) -> InvalidField {
    InvalidField::new(field, "is missing")
}

fn unreadable(error: &codec::DecodeError) -> InvalidField {
    InvalidField::new("effect", error.to_string())
}
