//! Workers that do not read what they are given for a while. Their node holds back further work, so that
//! little waits for them, and lets them have more when they read again. The engine counts bytes; here,
//! one unread task suffices.

use abide_core::dispatch::Dispatch;
use abide_shard::node::NodeInput;

use super::{
    Event, World,
    nodes::NodeEvent,
    streams::Stream,
    workers::{Worker, WorkerEvent},
};
use crate::{
    checks::{Check, Checked, Violation},
    schedule::{MILLIS, Micros, SECOND},
    settings::delay,
};

/// How long a worker does not read.
const PAUSE: Micros = 4 * SECOND;

/// How long it does not read once faults are over.
const PAUSE_AT_REST: Micros = SECOND;

/// What waits for a worker that does not read.
#[derive(Debug, Default)]
pub(super) struct Unread {
    tasks: Vec<Dispatch>,
    /// Whether its node knows.
    held: bool,
    /// Number of matches whose work came since.
    given: usize,
}

impl World {
    /// A worker reads nothing for a while.
    pub(super) fn stop_reading(&mut self, index: usize) {
        let most = if self.calm { PAUSE_AT_REST } else { PAUSE };
        let later = self.rng.between(100 * MILLIS, most);
        let Some(worker) = self.workers.get_mut(index) else { return };
        if worker.connected && worker.unread.is_none() {
            self.trace.note(None, || format!("{:>12} worker {index} stops reading", self.now));
            worker.unread = Some(Unread::default());
            let event = WorkerEvent::ReadOn(worker.stream);
            let session = worker.session_number;
            self.plan_in(later, Event::Worker(index, session, event));
        }
    }

    /// Keeps work for a worker that does not read; returns what can be sent.
    pub(super) fn unless_unread(&mut self, stream: Stream, dispatch: Dispatch) -> Option<Dispatch> {
        let worker = self.workers.get_mut(stream.worker).filter(|worker| worker.has(stream));
        let Some(unread) = worker.and_then(|worker| worker.unread.as_mut()) else {
            return Some(dispatch);
        };
        let matched = !matches!(dispatch, Dispatch::Activity { eager: true, .. });
        unread.given += usize::from(unread.held && matched);
        unread.tasks.push(dispatch);
        None
    }

    /// The input by which a node learns that a worker does not read, when it must.
    pub(super) fn hold_back_from(&mut self, stream: Stream) -> Option<NodeInput<Stream>> {
        let worker = self.workers.get_mut(stream.worker).filter(|worker| worker.has(stream))?;
        let unread = worker.unread.as_mut().filter(|unread| !unread.held)?;
        unread.held = true;
        Some(NodeInput::Hold { session: worker.session.clone(), stream: stream.number })
    }

    /// A worker that does not read gets the work of matches that were in flight, and no more.
    pub(super) fn little_is_unread(&self, stream: Stream) -> Checked {
        let unread = self.workers.get(stream.worker).and_then(|worker| worker.unread.as_ref());
        match unread.filter(|unread| unread.given > self.settings.limits.matches_in_flight) {
            Some(unread) => {
                let (index, given) = (stream.worker, unread.given);
                let what = format!("worker {index} does not read and was given {given} more");
                Err(Violation::new(Check::Unread, what))
            }
            None => Ok(()),
        }
    }

    /// The worker reads again, if it has the same stream.
    pub(super) fn read_on(&mut self, index: usize, stream: u64) -> Checked {
        let Some(worker) = self.workers.get_mut(index).filter(|worker| worker.stream == stream)
        else {
            return Ok(());
        };
        let Some(unread) = worker.unread.take().filter(|_| worker.connected) else { return Ok(()) };
        let (session, node) = (worker.session.clone(), worker.node);
        let number = worker.session_number;
        for task in unread.tasks {
            let later = delay(&mut self.rng, 3 * MILLIS, false);
            let event = WorkerEvent::Work(stream, Box::new(task));
            self.plan_in(later, Event::Worker(index, number, event));
        }
        if !unread.held {
            return Ok(());
        }
        self.tell_node(node, NodeEvent::Input(Box::new(NodeInput::Resume { session, stream })))
    }
}

impl Worker {
    /// Whether this is its stream.
    fn has(&self, stream: Stream) -> bool {
        self.connected && self.session_number == stream.session && self.stream == stream.number
    }
}
