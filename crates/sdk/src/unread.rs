//! Signals whose data could not be decoded, on their way from the worker to the executor: the data is
//! replaced by the reason. Signals come from anyone who may send some, so one that can never be decoded
//! must not stop its run; the executor records that it was refused.

use abide_core::event::SignalReceived;
use serde::{Deserialize, Serialize};

use crate::payload::ENCODING;

/// The encoding of the reason. Data from outside never has it here: what begins with `codec/` is
/// decoded, or replaced, before the executor sees it.
const UNREAD: &str = "codec/unread";

/// Why a signal could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unread {
    /// No key and no codec will ever help.
    pub(crate) never: bool,
    pub(crate) why: String,
}

/// The reason why the signal could not be decoded, if that is so.
pub(crate) fn reason(signal: &SignalReceived) -> Option<Unread> {
    let [payload] = &*signal.input else { return None };
    let marked = payload.metadata.get(ENCODING).is_some_and(|encoding| encoding == UNREAD);
    marked.then(|| serde_json::from_slice(&payload.data).ok()).flatten()
}

/// Puts the reason in the place of the data.
#[cfg(feature = "worker")]
pub(crate) fn mark(signal: &mut SignalReceived, unread: &Unread) {
    // A text and a truth value can always be written.
    let data = serde_json::to_vec(unread).unwrap_or_default();
    signal.input = vec![crate::payload::with_encoding(UNREAD, data)];
    signal.header.clear();
}
