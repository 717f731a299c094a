//! Signals that nobody has received, in the order of history.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{ids::EventNumber, payload::Payloads};

/// How many signals of unknown names go along to the next run: else whoever can send signals could make
/// every run begin with more of them.
const UNKNOWN_CARRIED_MAX: usize = 100;

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
    /// Those that code cannot read.
    aside: BTreeSet<EventNumber>,
}

impl Mailbox {
    pub(super) fn put(&mut self, signal: Signal) {
        self.signals.insert(signal.number, signal);
    }

    /// Keeps a signal that is not to be taken.
    pub(super) fn set_aside(&mut self, number: EventNumber) {
        self.aside.insert(number);
    }

    /// Takes the oldest signal of this name; the empty name takes the oldest of all.
    pub(super) fn take(&mut self, name: &str) -> Option<Signal> {
        let wanted = |signal: &Signal| name.is_empty() || signal.name == name;
        let number = *self.signals.iter().find(|(_, signal)| wanted(signal))?.0;
        self.signals.remove(&number)
    }

    /// What the next run must have: all signals of declared names, and the newest of the others.
    pub(super) fn carried(&self, declared: &[&str]) -> Vec<EventNumber> {
        let (known, unknown): (Vec<_>, Vec<_>) =
            self.signals.values().partition(|signal| declared.contains(&signal.name.as_str()));
        let newest = unknown.into_iter().rev().take(UNKNOWN_CARRIED_MAX);
        let unread = known.into_iter().chain(newest).map(|signal| signal.number);
        unread.chain(self.aside.iter().copied()).collect()
    }
}
