//! Clients: each operation is one request, repeated with the same key until it has a reply or the
//! client gives up.

use abide_core::{
    event::{SignalReceived, UpdateRequest},
    ids::{EventNumber, RunId, UpdateId, WorkflowKey},
    operation::{
        AnyAnswer, CallError, Describe, RunOperation, RunTarget, Signal, Start, Ticket, Unpause,
        Update,
    },
};

use super::{
    Event, World,
    calls::{Asker, Request},
    nodes::NodeId,
};
use crate::{
    checks::{Checked, reads::Floor},
    schedule::{MILLIS, Micros, SECOND},
    settings::delay,
};

/// How many times a client repeats a request.
const PATIENCE: u32 = 8;

/// Number of clients that ask a stalled node for what it has in memory.
const NOSY: usize = 4;

/// One request of a client.
#[derive(Debug, Default)]
pub(crate) struct Operation {
    /// The request, drawn when it is first sent.
    asked: Option<Box<RunOperation>>,
    waiting: Option<Ticket>,
    /// What was committed when it was last sent.
    floor: Option<Floor>,
    attempts: u32,
    over: bool,
    /// Node to send it to, while that is up.
    at: Option<NodeId>,
}

impl Operation {
    /// Whether it is still to be sent for the first time.
    pub(super) const fn held_back(&self) -> bool {
        self.asked.is_some() && self.attempts == 0
    }

    /// The signal that it sends.
    pub(super) fn signal(&self) -> Option<(&RunTarget, &SignalReceived)> {
        match self.asked.as_deref()? {
            RunOperation::Signal(Signal { target, signal, .. }) => Some((target, signal)),
            _ => None,
        }
    }

    /// The start that it requests.
    pub(super) fn start(&self) -> Option<&Start> {
        match self.asked.as_deref()? {
            RunOperation::Start(start) => Some(start),
            _ => None,
        }
    }

    /// The update that it requests, alone or with a start.
    pub(super) fn update(&self) -> Option<(&WorkflowKey, &UpdateId, &UpdateRequest)> {
        match self.asked.as_deref()? {
            RunOperation::Update(Update { target, update, request, .. }) => {
                Some((&target.workflow, update, request))
            }
            RunOperation::Start(start) => {
                let asked = start.update.as_ref()?;
                Some((&start.workflow, &asked.update, &asked.request))
            }
            _ => None,
        }
    }
}

impl World {
    /// Sends the request, for the first time or again.
    pub(super) fn ask(&mut self, index: usize) -> Checked {
        let drawn = self.operations.get(index).is_some_and(|operation| operation.asked.is_some());
        if !drawn {
            let asked = self.draw_request(index);
            if let Some(operation) = self.operations.get_mut(index) {
                operation.asked = asked.map(Box::new);
            }
        }
        let Some(operation) = self.operations.get_mut(index) else { return Ok(()) };
        let Some(asked) = operation.asked.clone() else { return Ok(()) };
        if operation.over || operation.waiting.is_some() {
            return Ok(());
        }
        operation.attempts += 1;
        if operation.attempts > PATIENCE {
            operation.over = true;
            return Ok(());
        }
        let known = self.operations.get(index).and_then(|operation| operation.at);
        let known = known.filter(|node| self.nodes[*node].up);
        let Some(entry) = known.or_else(|| self.some_node(|node| node.up)) else {
            return self.retry(index);
        };
        let floor = if self.leased() { Floor::of(&self.ledger, &asked) } else { None };
        let attempts = self.operations.get(index).map_or(1, |operation| operation.attempts);
        self.promises.asks(&asked);
        let asked = Box::new(self.saboteur.repeated(*asked, attempts));
        let later = delay(&mut self.rng, 5 * MILLIS, false);
        let request = Request::Operation(asked);
        let ticket = self.call_at(entry, later, Asker::Client(index), request);
        if let Some(operation) = self.operations.get_mut(index) {
            operation.waiting = Some(ticket);
            operation.floor = floor;
        }
        let patience = self.rng.between(SECOND, 8 * SECOND);
        self.plan_in(later + patience, Event::ClientTimeout(index, ticket));
        Ok(())
    }

    /// Sends the request again some time later.
    pub(super) fn retry(&mut self, index: usize) -> Checked {
        if let Some(operation) = self.operations.get_mut(index) {
            operation.waiting = None;
        }
        let later: Micros = self.rng.between(20 * MILLIS, SECOND);
        self.plan_in(later, Event::Client(index));
        Ok(())
    }

    /// No reply came for a long time: the client sends the request again.
    pub(super) fn give_up_waiting(&mut self, index: usize, ticket: Ticket) -> Checked {
        let waiting = self.operations.get(index).and_then(|operation| operation.waiting);
        if waiting != Some(ticket) {
            return Ok(());
        }
        self.blocked_is_told(ticket)?;
        self.forget_call(ticket)?;
        self.retry(index)
    }

    pub(super) fn answered(
        &mut self,
        index: usize,
        result: Result<AnyAnswer, CallError>,
        queried: Option<(RunId, EventNumber)>,
    ) -> Checked {
        if let Some(floor) = self.operations.get(index).and_then(|operation| operation.floor) {
            floor.holds(&self.ledger, &result, queried)?;
        }
        if self.trouble(self.settings.odds.reply_lost) {
            return self.retry(index);
        }
        if result.as_ref().is_err_and(CallError::passing) {
            return self.retry(index);
        }
        let Some(operation) = self.operations.get_mut(index) else { return Ok(()) };
        operation.waiting = None;
        operation.over = true;
        let first = operation.attempts == 1;
        let Some(asked) = operation.asked.clone() else { return Ok(()) };
        if let Err(error) = &result {
            self.promises.check_key(&asked, error)?;
        }
        match result {
            Ok(answer) => {
                self.counts.acknowledged += 1;
                self.promises.check_reply(&self.ledger, &asked, &answer)
            }
            // An earlier attempt may have been accepted.
            Err(CallError::Refused(_)) if first => {
                self.promises.refused(&asked);
                Ok(())
            }
            Err(error) => self.promises.check_error(&self.ledger, &asked, &error),
        }
    }

    /// A client asks for something besides what was planned.
    pub(super) fn ask_now(&mut self, asked: impl Into<RunOperation>) {
        let index = self.hold_back(asked);
        let later = self.rng.below(SECOND);
        self.plan_in(later, Event::Client(index));
    }

    /// Asks a stalled node for what it has in memory.
    pub(super) fn ask_frozen(&mut self, node: NodeId, until: Micros) {
        let of_node = self.slots.values().filter(|slot| slot.node == node);
        let in_memory = of_node.flat_map(|slot| {
            let runs = self.ledger.stories.values().map(|story| &story.run);
            runs.filter(|run| slot.machine.peek(run.id).is_some())
        });
        let known: Vec<_> =
            in_memory.map(|run| exactly(run.workflow.clone(), run.id)).take(NOSY).collect();
        for target in known {
            let index = self.hold_back(Describe { target });
            if let Some(operation) = self.operations.get_mut(index) {
                operation.at = Some(node);
            }
            let later = self.rng.between(until / 2, until);
            self.plan_in(later, Event::Client(index));
        }
    }

    /// Keeps a request for later.
    pub(super) fn hold_back(&mut self, asked: impl Into<RunOperation>) -> usize {
        let asked = Some(Box::new(asked.into()));
        self.operations.push(Operation { asked, ..Operation::default() });
        self.operations.len() - 1
    }

    pub(super) fn unpause_all(&mut self) {
        let paused: Vec<_> = self
            .ledger
            .stories
            .values()
            .filter(|story| story.run.open() && story.run.paused)
            .map(|story| (story.run.workflow.clone(), story.run.id))
            .collect();
        for (workflow, run) in paused {
            self.ask_now(Unpause {
                target: exactly(workflow, run),
                reason: String::new(),
                identity: String::new(),
                key: None,
            });
        }
    }
}

pub(super) fn exactly(workflow: WorkflowKey, run: RunId) -> RunTarget {
    RunTarget { workflow, run: Some(run) }
}
