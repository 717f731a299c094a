//! What nodes tell each other, as it travels.

use abide_core::{
    call::{Call, CallError, CallReply, QueueKey, Worker},
    codec::{self, Wire},
    ids::{SessionId, ShardId},
    limits::InvalidField,
};
use abide_engine::peers::PeerMessage;
use abide_proto::{
    error,
    generated::{
        self as wire, numbered_answer::Answer, peer_answer, peer_call, peer_message::Message,
        peer_offer,
    },
    operation::{Operation, Reply, answer_from_wire, operation_from_wire, operation_to_wire},
    worker::{
        acknowledgement_from_wire, acknowledgement_to_wire, completion_from_wire,
        completion_to_wire, credit_from_wire, credit_to_wire, shard_from_wire,
    },
};
use abide_shard::message::{EffectKey, Envelope, Mail, Offer, Work};

/// A call for another node, as it travels.
pub(super) fn call_to_wire(call: Call) -> Result<peer_call::Call, CallError> {
    let session = match &call {
        Call::PresentAttempt(_, session) => session.to_string(),
        _ => String::new(),
    };
    if let Call::AwaitEvents(target, after) = call {
        let target = Some(target.into());
        return Ok(peer_call::Call::AwaitEvents(wire::PeerAwaitEvents { target, after }));
    }
    if !of_worker(&call) {
        return operation(Operation::Call(call));
    }
    let completion = completion_to_wire(call);
    let completion = Some(wire::Completion { number: 0, completion });
    Ok(peer_call::Call::Worker(wire::PeerCompletion { completion, session }))
}

/// Whether it is a worker's answer to what it was given.
const fn of_worker(call: &Call) -> bool {
    matches!(
        call,
        Call::CompleteTask(..)
            | Call::FailTask { .. }
            | Call::AnswerQuery(..)
            | Call::ResolveActivity(..)
            | Call::Heartbeat(..)
            | Call::PresentAttempt(..)
            | Call::DetachAttempt(_)
    )
}

/// An operation of a client for another node, as it travels.
fn operation(operation: Operation) -> Result<peer_call::Call, CallError> {
    let call = Some(operation_to_wire(operation)?);
    Ok(peer_call::Call::Client(wire::NumberedCall { number: 0, call }))
}

/// What another node calls for.
pub(super) enum Called {
    Client(Operation),
    Worker(Call),
}

/// What another node calls for.
pub(super) fn called(call: Option<peer_call::Call>) -> Result<Called, InvalidField> {
    let missing = || InvalidField::new("call", "has no known case set");
    Ok(match call.ok_or_else(missing)? {
        peer_call::Call::Client(call) => {
            let asked = call.call.ok_or_else(missing)?;
            Called::Client(operation_from_wire(asked)?)
        }
        peer_call::Call::Worker(wire::PeerCompletion { completion, session }) => {
            let completion = completion.and_then(|completion| completion.completion);
            let session = SessionId::from(session);
            Called::Worker(completion_from_wire(completion.ok_or_else(missing)?, &session)?)
        }
        peer_call::Call::AwaitEvents(wire::PeerAwaitEvents { target, after }) => {
            let target = target.ok_or_else(missing)?.try_into()?;
            Called::Client(Operation::Call(Call::AwaitEvents(target, after)))
        }
    })
}

/// The answer to a client's operation, as it travels.
pub(super) fn reply_to_wire(reply: Result<Reply, CallError>) -> peer_answer::Answer {
    if let Ok(Reply::Call(CallReply::History { run, last_event, closed })) = reply {
        let run = run.to_wire();
        return peer_answer::Answer::Events(wire::PeerEvents { run, last_event, closed });
    }
    let answer = reply.map_or_else(|failed| Answer::Error(error::to_detail(failed)), Into::into);
    peer_answer::Answer::Client(wire::NumberedAnswer { number: 0, answer: Some(answer) })
}

/// The answer to a worker's call, as it travels.
pub(super) fn acknowledged(reply: Result<CallReply, CallError>) -> peer_answer::Answer {
    let acknowledgement = Some(acknowledgement_to_wire(reply));
    peer_answer::Answer::Worker(wire::Acknowledgement { number: 0, acknowledgement })
}

/// What another node answered.
pub(super) fn reply_from_wire(answer: Option<peer_answer::Answer>) -> Result<Reply, CallError> {
    let unknown = || CallError::Unavailable("another node answered what nobody knows".into());
    match answer.ok_or_else(unknown)? {
        peer_answer::Answer::Client(answer) => answer_from_wire(answer.answer.ok_or_else(unknown)?),
        peer_answer::Answer::Worker(answer) => {
            acknowledgement_from_wire(answer.acknowledgement.ok_or_else(unknown)?).map(Reply::Call)
        }
        peer_answer::Answer::Events(wire::PeerEvents { run, last_event, closed }) => {
            let run = word("run", run)?;
            Ok(Reply::Call(CallReply::History { run, last_event, closed }))
        }
    }
}

/// A message, as it travels.
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

/// What another node says.
pub(super) fn message_from_wire(wire: wire::PeerMessage) -> Result<PeerMessage, InvalidField> {
    let message = wire.message.ok_or_else(|| InvalidField::new("message", "is not known"))?;
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
