//! Signals that nobody has received, in the order of history.

use std::collections::BTreeMap;

use abide_core::{ids::EventNumber, payload::Payloads};

/// A signal that was kept.
#[derive(Debug)]
pub(crate) struct Signal {
    pub(crate) number: EventNumber,
    pub(crate) name: String,
    pub(crate) input: Payloads,
}

/// The unread signals of a run. One that was given back takes its old place.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    signals: BTreeMap<EventNumber, Signal>,
}

impl Mailbox {
    pub(super) fn put(&mut self, signal: Signal) {
        self.signals.insert(signal.number, signal);
    }

    /// Takes the oldest signal of this name.
    pub(super) fn take(&mut self, name: &str) -> Option<Signal> {
        let number = *self.signals.iter().find(|(_, signal)| signal.name == name)?.0;
        self.signals.remove(&number)
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = EventNumber> {
        self.signals.keys().copied()
    }
}
