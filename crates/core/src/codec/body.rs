//! Bodies: the table of all facts, and the rule that stored bytes are copied and never encoded
//! again.

use bytes::Bytes;
use prost::Message;

use super::{
    error::{DecodeError, Problem},
    frame, generated,
    table::union,
    wire::{Wire, field},
};
use crate::event::{Body, Fact};

union! {
    Fact = body::Fact {
        whole {
            RunStarted,
            RunCompleted,
            RunFailed,
            RunTimedOut,
            RunCancelRequested,
            RunCancelled,
            RunTerminated,
            RunContinuedAsNew,
            RunPaused,
            RunUnpaused,
            TaskScheduled,
            TaskStarted,
            TaskCompleted,
            TaskFailed,
            TaskTimedOut,
            ActivityScheduled,
            ActivityStarted,
            ActivityCompleted,
            ActivityFailed,
            ActivityTimedOut,
            ActivityCancelRequested,
            ActivityCancelled,
            TimerStarted,
            TimerRescheduled,
            TimerFired,
            TimerCancelled,
            WaitOpened,
            WaitDescribed,
            WaitSatisfied,
            WaitTimedOut,
            WaitCancelled,
            SignalReceived,
            UpdateAdmitted,
            UpdateAccepted,
            UpdateCompleted,
            ChildInitiated,
            ChildStarted,
            ChildStartFailed,
            ChildCompleted,
            ChildFailed,
            ChildTimedOut,
            ChildCancelled,
            ChildTerminated,
            ExternalSignalInitiated,
            ExternalSignalDelivered,
            ExternalSignalFailed,
            ExternalCancelInitiated,
            ExternalCancelDelivered,
            ExternalCancelFailed,
            MarkerRecorded,
            SearchAttributesUpserted,
            MemoUpserted,
        }
        parts {}
    }
}

/// The tag of `Body.extension`, the only field outside the oneof.
const EXTENSION: u32 = 1;

/// A body that is about to be written.
#[expect(
    clippy::large_enum_variant,
    reason = "lives on the stack for the time of one call; a box would be an allocation per event"
)]
pub(super) enum Encoder<'a> {
    /// Bytes that were read from a log.
    Stored(&'a Bytes),
    Fresh(generated::Body),
}

impl<'a> Encoder<'a> {
    pub(super) fn new(body: &'a Body) -> Self {
        body.stored().map_or_else(|| Self::Fresh(message(body)), Self::Stored)
    }

    pub(super) fn encoded_len(&self) -> usize {
        match self {
            Self::Stored(bytes) => bytes.len(),
            Self::Fresh(body) => body.encoded_len(),
        }
    }

    pub(super) fn encode(&self, buffer: &mut Vec<u8>) {
        match self {
            Self::Stored(bytes) => buffer.extend_from_slice(bytes),
            Self::Fresh(body) => body.encode_raw(buffer),
        }
    }
}

pub(super) fn encode(body: &Body) -> Bytes {
    body.stored().cloned().unwrap_or_else(|| message(body).encode_to_vec().into())
}

pub(super) fn decode(bytes: Bytes) -> Result<Body, DecodeError> {
    let generated::Body { extension, fact } = generated::Body::decode(bytes.clone())?;
    let Some(fact) = fact else {
        return Err(match frame::unknown_tag(bytes, &[EXTENSION]) {
            Some(tag) => Problem::UnknownTag { message: "Body", tag }.into(),
            None => DecodeError::from(Problem::Missing).inside("fact"),
        });
    };
    Ok(Body::from_stored(Fact::from_wire(fact)?, field("extension", extension)?, bytes))
}

fn message(body: &Body) -> generated::Body {
    generated::Body { extension: body.extension.to_wire(), fact: body.fact.to_wire() }
}

/// A body inside another message is encoded as the bytes of its own message.
impl Wire<Bytes> for Body {
    fn to_wire(&self) -> Bytes {
        encode(self)
    }

    fn from_wire(wire: Bytes) -> Result<Self, DecodeError> {
        decode(wire)
    }
}
