//! Signals: input from outside that needs no answer.

use super::RunReference;
use crate::{
    ids::Key,
    payload::{PayloadMap, Payloads},
    time::Timestamp,
};

/// A signal arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SignalReceived {
    /// The signal's name.
    pub name: String,
    /// Arguments.
    pub input: Payloads,
    /// Context that is passed along.
    pub header: PayloadMap,
    /// Who sent it.
    pub identity: String,
    /// Idempotency key of the request.
    pub key: Option<Key>,
    /// The run that sent it, if one did.
    pub source: Option<RunReference>,
    /// When it was received.
    pub received_at: Timestamp,
}
