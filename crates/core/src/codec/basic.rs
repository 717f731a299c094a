//! Types that all concepts share: ids, time, payloads and retries.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;

use super::{
    error::{DecodeError, Problem},
    generated,
    table::{enumerations, messages, required},
    wire::Wire,
};
use crate::{
    digest::Digest,
    ids::{
        ActivityId, BuildId, ExecutionId, Key, NamespaceId, RunId, SessionId, StartId, TimerId,
        UpdateId, WaitId, WorkflowId, WorkflowKey,
    },
    payload::{Payload, Payloads},
    retry::{RetryPolicy, RetryState},
    time::Timestamp,
};

messages! {
    Payload { metadata, data }
    RetryPolicy {
        initial_interval,
        backoff_permille,
        maximum_interval,
        maximum_attempts,
        non_retryable_types,
        recorded,
    }
    StartId { incarnation, counter }
    WorkflowKey { namespace, workflow }
}

enumerations! {
    RetryState {
        InProgress,
        NonRetryableFailure,
        Timeout,
        MaximumAttemptsReached,
        PolicyNotSet,
        CancelRequested,
    }
}

macro_rules! texts {
    ($($id:ident),* $(,)?) => { $(
        impl Wire<String> for $id {
            fn to_wire(&self) -> String {
                self.as_str().to_owned()
            }

            fn from_wire(wire: String) -> Result<Self, DecodeError> {
                Ok(wire.into())
            }
        }

        #[cfg(test)]
        impl super::arbitrary::Sample for $id {
            fn sample(source: &mut super::arbitrary::Source) -> Self {
                String::sample(source).into()
            }
        }
    )* };
}

texts! {
    ActivityId,
    BuildId,
    ExecutionId,
    Key,
    NamespaceId,
    SessionId,
    TimerId,
    UpdateId,
    WaitId,
    WorkflowId,
}

impl Wire<Bytes> for RunId {
    fn to_wire(&self) -> Bytes {
        Bytes::copy_from_slice(self.as_bytes())
    }

    fn from_wire(wire: Bytes) -> Result<Self, DecodeError> {
        Ok(Self::from_slice(&wire).ok_or(Problem::Invalid("not the 16 bytes of a run id"))?)
    }
}

impl Wire<u64> for Digest {
    fn to_wire(&self) -> u64 {
        self.number()
    }

    fn from_wire(wire: u64) -> Result<Self, DecodeError> {
        Ok(Self::from_number(wire))
    }
}

impl Wire<generated::Payloads> for Payloads {
    fn to_wire(&self) -> generated::Payloads {
        generated::Payloads { items: self.to_wire() }
    }

    fn from_wire(wire: generated::Payloads) -> Result<Self, DecodeError> {
        Self::from_wire(wire.items)
    }
}

impl Wire<generated::Timestamp> for Timestamp {
    fn to_wire(&self) -> generated::Timestamp {
        generated::Timestamp { seconds: self.seconds(), nanos: self.nanos() }
    }

    fn from_wire(wire: generated::Timestamp) -> Result<Self, DecodeError> {
        let time = Self::new(wire.seconds, wire.nanos);
        Ok(time.ok_or(Problem::Invalid("a time outside the years 1 to 9999"))?)
    }
}

impl Wire<generated::Duration> for Duration {
    fn to_wire(&self) -> generated::Duration {
        generated::Duration { seconds: self.as_secs(), nanos: self.subsec_nanos() }
    }

    fn from_wire(wire: generated::Duration) -> Result<Self, DecodeError> {
        if wire.nanos >= 1_000_000_000 {
            return Err(Problem::Invalid("a duration of more nanoseconds than a second has").into());
        }
        Ok(Self::new(wire.seconds, wire.nanos))
    }
}

pub(super) fn encode_payload(payload: &Payload) -> Bytes {
    let message: generated::Payload = payload.to_wire();
    message.encode_to_vec().into()
}

pub(super) fn decode_payload(bytes: Bytes) -> Result<Payload, DecodeError> {
    Payload::from_wire(generated::Payload::decode(bytes)?)
}

required!(Timestamp, generated::Timestamp);
required!(Duration, generated::Duration);
