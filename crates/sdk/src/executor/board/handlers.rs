//! Unfinished handlers of signals and updates.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::poll_fn,
    rc::Rc,
    task::{Poll, Waker},
};

use abide_core::{
    command::Ask,
    event::{UpdateOutcome, UpdateRequest},
    ids::{EventNumber, UpdateId},
};

use super::{Board, TurnInfo, news::wake};

/// How many handlers a text names before it only counts them.
const NAMED: usize = 5;

#[derive(Default)]
pub(super) struct Handlers {
    /// The names of signals whose handlers run.
    signals: BTreeMap<EventNumber, String>,
    /// Accepted updates with their names, oldest first.
    updates: Vec<(UpdateId, String)>,
    /// Updates that history accepts in the turn that is replayed.
    pub(super) accepted: BTreeSet<UpdateId>,
    /// The waker of the closing run, which waits for the messages of the task.
    closing: Option<Waker>,
}

impl Handlers {
    pub(super) fn signals(&self) -> impl Iterator<Item = EventNumber> {
        self.signals.keys().copied()
    }

    fn count(&self) -> usize {
        self.signals.len() + self.updates.len()
    }

    fn shown(&self) -> String {
        let signals = self.signals.values().map(|name| format!("signal {name}"));
        let updates = self.updates.iter().map(|(id, name)| format!("update {name} ({id})"));
        let mut shown: Vec<_> = signals.chain(updates).take(NAMED).collect();
        if let Some(more) = self.count().checked_sub(NAMED).filter(|more| *more > 0) {
            shown.push(format!("and {more} more"));
        }
        shown.join(", ")
    }
}

impl Board {
    pub(crate) fn handlers_run(&self) -> bool {
        self.shared.borrow().handlers.count() > 0
    }

    /// The names of the running handlers, for messages.
    pub(crate) fn shown_handlers(&self) -> String {
        self.shared.borrow().handlers.shown()
    }

    /// A message of the task was delivered to its handler.
    pub(in crate::executor) fn message_shown(&self) {
        let turn = self.turn.get();
        let messages = turn.messages.saturating_sub(1);
        self.turn.set(TurnInfo { messages, ..turn });
        if messages == 0 {
            let closing = self.shared.borrow_mut().handlers.closing.take();
            wake(closing);
        }
    }

    /// Waits until all messages of the task were delivered to handlers. History does not record
    /// this: replay delivers the same messages with the same task.
    pub(in crate::executor) async fn messages_shown(&self) {
        poll_fn(|cx| {
            if self.turn.get().messages == 0 {
                return Poll::Ready(());
            }
            let replaced = self.shared.borrow_mut().handlers.closing.replace(cx.waker().clone());
            drop(replaced);
            Poll::Pending
        })
        .await;
    }

    pub(in crate::executor) fn accept_update(&self, update: UpdateId, request: UpdateRequest) {
        let mut shared = self.shared.borrow_mut();
        shared.handlers.updates.push((update.clone(), request.name.clone()));
        self.ask(&mut shared, Ask::AcceptUpdate { update, request });
    }

    pub(in crate::executor) fn complete_update(&self, update: UpdateId, outcome: UpdateOutcome) {
        let mut shared = self.shared.borrow_mut();
        shared.handlers.updates.retain(|(open, _)| *open != update);
        self.ask(&mut shared, Ask::CompleteUpdate { update, outcome });
    }

    /// Accepted updates that have no outcome, oldest first.
    pub(in crate::executor) fn open_updates(&self) -> Vec<UpdateId> {
        self.shared.borrow().handlers.updates.iter().map(|(update, _)| update.clone()).collect()
    }

    pub(in crate::executor) fn begin_signal(&self, number: EventNumber, name: &str) {
        self.shared.borrow_mut().handlers.signals.insert(number, name.to_owned());
    }

    pub(in crate::executor) fn end_signal(&self, number: EventNumber) {
        self.shared.borrow_mut().handlers.signals.remove(&number);
    }

    /// Sets the running handler, for the message of a fault.
    pub(in crate::executor) fn set_handling(&self, handler: Option<Rc<str>>) {
        *self.handling.borrow_mut() = handler;
    }

    /// The handler that ran when code panicked.
    pub(in crate::executor) fn take_handling(&self) -> Option<Rc<str>> {
        self.handling.borrow_mut().take()
    }
}
