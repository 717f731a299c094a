//! Effects on other workflows and their answers, as outbox and inbox keep them.

use bytes::Bytes;
use prost::Message;

use super::{
    error::DecodeError,
    frame, generated,
    table::{messages, union},
    wire::Wire,
};
use crate::effect::{
    Action, AdoptChild, ChildClosed, Effect, EffectOutcome, RunOutcome, StartChild,
};

messages! {
    Effect { target, action, initiated }
    StartChild { run, child, parent, root }
    ChildClosed { initiated, first_run, run, outcome }
    AdoptChild { run, parent }
}

union! {
    Action = effect::Action {
        whole { StartChild, ChildClosed, AdoptChild }
        parts {
            Signal(SignalAction) { name, input, header },
            Cancel(CancelAction) { mode, reason },
        }
    }
}

union! {
    RunOutcome = child_outcome::Case in ChildOutcome {
        whole { Completed, Cancelled }
        parts {
            Failed(ChildFailure) { failure, retry_state },
            TimedOut(ChildTimeout) { retry_state },
            Terminated(ChildTermination) { reason },
        }
    }
}

union! {
    EffectOutcome = answer::Case in Answer {
        whole { Failed }
        parts { Applied(Nothing) {} }
    }
}

/// The tags of `Effect` outside its oneof.
const TARGET_AND_INITIATED: [u32; 2] = [1, 2];

pub(super) fn encode(effect: &Effect) -> Bytes {
    let message: generated::Effect = effect.to_wire();
    message.encode_to_vec().into()
}

pub(super) fn decode(bytes: Bytes) -> Result<Effect, DecodeError> {
    frame::read_message::<_, generated::Effect>("Effect", "action", &TARGET_AND_INITIATED, bytes)
}

pub(super) fn encode_answer(answer: &EffectOutcome) -> Bytes {
    let message: generated::Answer = answer.to_wire();
    message.encode_to_vec().into()
}

pub(super) fn decode_answer(bytes: Bytes) -> Result<EffectOutcome, DecodeError> {
    frame::read_message::<_, generated::Answer>("EffectOutcome", "", &[], bytes)
}
