//! Batches, for the registry and for those who ask.

use bytes::Bytes;
use prost::Message;

use super::{
    error::DecodeError,
    generated,
    table::{enumerations, messages, union},
    wire::Wire,
};
use crate::{
    batch::{Batch, BatchAction, BatchFailure, BatchPosition, BatchSpec, BatchState},
    run::ResetPoint,
};

messages! {
    BatchSpec { id, query, action, rate, reason, identity }
    Batch {
        spec,
        state,
        started_at,
        ended_at,
        total,
        done,
        failed,
        failures,
        position,
        driver,
        beat,
    }
    BatchPosition { started_at, run }
    BatchFailure { workflow, run, reason }
}

enumerations! {
    BatchState { Running, Stopped, Completed }
}

union! {
    BatchAction = batch_action::Case in BatchAction {
        whole {}
        parts {
            Cancel(Nothing) {},
            Terminate(Nothing) {},
            Delete(Nothing) {},
            Signal(BatchSignal) { name, input },
            Reset(BatchReset) { to, drop_signals, drop_updates },
        }
    }
}

union! {
    ResetPoint = reset_point::Case in ResetPoint {
        whole { Event, Build }
        parts {
            FirstTask(Nothing) {},
            LastTask(Nothing) {},
            Failure(Nothing) {},
        }
    }
}

pub(super) fn encode_all(batches: &[Batch]) -> Bytes {
    let batches = batches.iter().map(Wire::to_wire).collect();
    generated::Batches { batches }.encode_to_vec().into()
}

pub(super) fn decode_all(bytes: Bytes) -> Result<Vec<Batch>, DecodeError> {
    generated::Batches::decode(bytes)?.batches.into_iter().map(Wire::from_wire).collect()
}
