//! The outcome of the messages that were sent.

use std::collections::{BTreeMap, BTreeSet};

use tonic::Code;

use crate::{Finding, Report, report::Bytes};

/// Counts of messages sent, and of their answers.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub rounds: u64,
    pub messages: u64,
    bytes: u64,
    answered: u64,
    refused: BTreeMap<&'static str, u64>,
    /// Methods that accepted at least one message.
    accepted: BTreeSet<String>,
    /// Tasks that the strangers' workers received.
    tasks: u64,
}

/// With fewer messages than this, the tally does not judge how many were accepted.
const MANY: u64 = 20_000;

impl Tally {
    pub(super) fn sent(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes as u64;
    }

    pub(super) fn answered(&mut self, method: &str) {
        self.answered += 1;
        if !self.accepted.contains(method) {
            self.accepted.insert(method.to_owned());
        }
    }

    pub(super) fn refused(&mut self, code: Code) {
        *self.refused.entry(code.description()).or_default() += 1;
    }

    pub(super) fn task(&mut self) {
        self.tasks += 1;
    }

    pub(super) fn add(&mut self, round: &Self) {
        self.rounds += 1;
        self.messages += round.messages;
        self.bytes += round.bytes;
        self.answered += round.answered;
        self.tasks += round.tasks;
        self.accepted.extend(round.accepted.iter().cloned());
        for (code, count) in &round.refused {
            *self.refused.entry(code).or_default() += count;
        }
    }

    /// A finding if so few messages were accepted that the run proves nothing.
    pub(super) fn check(&self) -> Result<(), Finding> {
        let shown = self.messages < MANY || (self.accepted.len() >= 20 && self.tasks > 100);
        Finding::unless(shown, || {
            format!(
                "the fuzzer has gone blind: {} tasks, and accepted only by {:?}",
                self.tasks, self.accepted
            )
        })
    }

    pub(super) fn report(&self) -> Report {
        let refused: Vec<_> =
            self.refused.iter().map(|(code, count)| format!("{count} \"{code}\"")).collect();
        Report::default()
            .with("rounds", self.rounds)
            .with("messages", self.messages)
            .with("in all", Bytes(self.bytes))
            .with("answered", self.answered)
            .with("methods that answered", self.accepted.len())
            .with("tasks", self.tasks)
            .with("refused", refused.join(", "))
    }
}
