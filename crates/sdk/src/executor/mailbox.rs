//! Signals that code has not received, in the order of history.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{ids::EventNumber, payload::Payloads};

/// How many signals of unknown names are carried to the next run, and how many that code cannot
/// decode. Without a bound, a sender could make every run begin with more of them.
const UNREAD_CARRIED_MAX: usize = 100;

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

    /// The signals to carry to the next run: all of declared names, the newest of the others, and the
    /// newest of those that code cannot decode.
    pub(super) fn carried(&self, declared: &[&str]) -> Vec<EventNumber> {
        let (known, unknown): (Vec<_>, Vec<_>) =
            self.signals.values().partition(|signal| declared.contains(&signal.name.as_str()));
        let newest = unknown.into_iter().rev().take(UNREAD_CARRIED_MAX);
        let unread = known.into_iter().chain(newest).map(|signal| signal.number);
        let aside = self.aside.iter().rev().take(UNREAD_CARRIED_MAX).copied();
        unread.chain(aside).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_signals_that_code_does_not_read_the_newest_are_carried() {
        let mut mailbox = Mailbox::default();
        let signal = |number, name: &str| Signal { number, name: name.into(), input: Vec::new() };
        (1..=150).for_each(|number| mailbox.put(signal(number, "pay")));
        (151..=300).for_each(|number| mailbox.put(signal(number, "unknown")));
        (301..=450).for_each(|number| mailbox.set_aside(number));
        let mut carried = mailbox.carried(&["pay"]);
        carried.sort_unstable();
        let expected: Vec<_> = (1..=150).chain(201..=300).chain(351..=450).collect();
        assert_eq!(carried, expected);
    }
}
