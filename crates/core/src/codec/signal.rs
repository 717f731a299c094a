//! Signals.

use super::table::messages;
use crate::event::SignalReceived;

messages! {
    SignalReceived { name, input, header, identity, key, source, received_at }
}
