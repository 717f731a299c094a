//! Signals that code has not received, in the order of history.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{ids::EventNumber, payload::Payloads};

/// How many signals of unknown names are carried to the next run. Without a bound, a sender could
/// make every run begin with more of them.
const UNKNOWN_CARRIED_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct Signal {
    pub(crate) number: EventNumber,
    pub(crate) name: String,
    pub(crate) input: Payloads,
}

/// The unread signals of a run. A signal that is returned takes its old place.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    signals: BTreeMap<EventNumber, Signal>,
    /// Signals that code cannot decode.
    aside: BTreeSet<EventNumber>,
}

impl Mailbox {
    pub(super) fn put(&mut self, signal: Signal) {
        self.signals.insert(signal.number, signal);
    }

    /// Marks a signal as not receivable.
    pub(super) fn set_aside(&mut self, number: EventNumber) {
        self.aside.insert(number);
    }

    /// Takes the oldest signal of this name; the empty name matches every signal.
    pub(super) fn take(&mut self, name: &str) -> Option<Signal> {
        let wanted = |signal: &Signal| name.is_empty() || signal.name == name;
        let number = *self.signals.iter().find(|(_, signal)| wanted(signal))?.0;
        self.signals.remove(&number)
    }

    /// The signals to carry to the next run: all of declared names, and the newest of the others.
    pub(super) fn carried(&self, declared: &[&str]) -> Vec<EventNumber> {
        let (known, unknown): (Vec<_>, Vec<_>) =
            self.signals.values().partition(|signal| declared.contains(&signal.name.as_str()));
        let newest = unknown.into_iter().rev().take(UNKNOWN_CARRIED_MAX);
        let unread = known.into_iter().chain(newest).map(|signal| signal.number);
        unread.chain(self.aside.iter().copied()).collect()
    }
}
