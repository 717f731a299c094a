//! Signals: input from outside without a reply.

use super::RunReference;
use crate::{
    ids::Key,
    payload::{PayloadMap, Payloads},
    time::Timestamp,
};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SignalReceived {
    pub name: String,
    pub input: Payloads,
    /// Context propagated to the receiver.
    pub header: PayloadMap,
    pub identity: String,
    /// Idempotency key of the request.
    pub key: Option<Key>,
    /// Run that sent it, if it came from one.
    pub source: Option<RunReference>,
    /// When it was received.
    pub received_at: Timestamp,
}
