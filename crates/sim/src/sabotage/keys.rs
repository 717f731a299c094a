//! Bugs in how requests with a known key are taken.

use std::collections::BTreeMap;

use abide_core::{
    event::{RunSpec, SignalReceived, UpdateRequest},
    ids::{Key, UpdateId, WorkflowKey},
    operation::{RunOperation, Signal, Update},
    payload::Payload,
};

use super::{Bug, Saboteur};

/// The first request with each key.
#[derive(Debug)]
pub(super) struct Firsts {
    signals: BTreeMap<(WorkflowKey, Key), SignalReceived>,
    updates: BTreeMap<(WorkflowKey, UpdateId), UpdateRequest>,
    starts: BTreeMap<(WorkflowKey, Key), RunSpec>,
}

impl Firsts {
    pub(super) const fn new() -> Self {
        Self { signals: BTreeMap::new(), updates: BTreeMap::new(), starts: BTreeMap::new() }
    }
}

impl Saboteur {
    /// Gives a request the content of the first with its key.
    pub(super) fn take_for_first(&mut self, asked: &mut RunOperation) {
        match asked {
            RunOperation::Signal(Signal { target, signal, .. })
                if self.bug == Some(Bug::ReusedSignalKey) =>
            {
                let Some(key) = signal.key.clone() else { return };
                let name = (target.workflow.clone(), key);
                *signal = self.firsts.signals.entry(name).or_insert(signal.clone()).clone();
            }
            RunOperation::Update(Update { target, update, request, .. })
                if self.bug == Some(Bug::ReusedUpdateId) =>
            {
                let name = (target.workflow.clone(), update.clone());
                *request = self.firsts.updates.entry(name).or_insert(request.clone()).clone();
            }
            RunOperation::Start(start) if self.bug == Some(Bug::ReusedStartKey) => {
                let Some(key) = start.key.clone() else { return };
                let first = self.firsts.starts.entry((start.workflow.clone(), key));
                start.spec = first.or_insert(start.spec.clone()).clone();
            }
            _ => {}
        }
    }

    /// Gives a repeated request other content.
    pub(super) fn change_content(&self, asked: &mut RunOperation) {
        if self.bug != Some(Bug::RepeatRefused) {
            return;
        }
        let other = || vec![Payload::new("other")];
        match asked {
            RunOperation::Signal(Signal { signal, .. }) => signal.input = other(),
            RunOperation::Update(Update { request, .. }) => request.input = other(),
            RunOperation::Start(start) => start.spec.input = other(),
            _ => {}
        }
    }
}
