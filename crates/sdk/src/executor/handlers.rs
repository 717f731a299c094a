//! Delivers signals and updates to their handlers: which run at once, which become a task beside
//! the run, and which cannot be decoded.

use std::{future::poll_fn, rc::Rc};

use abide_core::{
    command::Ask,
    event::{SignalReceived, UpdateRequest},
    ids::{EventNumber, UpdateId},
    visible::visible,
};
use tracing::warn;

use super::{
    board::Board,
    machine::{Running, unknown},
    mailbox::Signal,
    outcome,
};
use crate::{
    definition::{Arrival, UpdateProgress, Workflow},
    future::LocalBoxFuture,
    interceptor::Message,
    registry::TaskFault,
};

impl<W: Workflow> Running<W> {
    pub(super) fn handle_signal(
        &mut self,
        number: EventNumber,
        signal: &SignalReceived,
    ) -> Result<(), TaskFault> {
        let SignalReceived { name, input, .. } = signal;
        let handler = W::SIGNALS.iter().find(|signal| signal.name() == name);
        if handler.is_none() {
            let signal = visible(name);
            warn!(%signal, "the workflow has no handler for this signal; it stays unread");
        }
        let Some(message) = self.board.admit_signal(number, signal)? else { return Ok(()) };
        let shown = self.begin_handling("signal", name, message);
        let arrival = handler.map_or(Ok(Arrival::Kept), |it| it.arrive(&self.context, input));
        let message = self.end_handling();
        match arrival {
            Ok(Arrival::Applied) => {}
            Ok(Arrival::Kept) => {
                self.board.keep(Signal { number, name: name.clone(), input: input.clone() });
            }
            Ok(Arrival::Task(task)) => {
                let board = self.board.clone();
                board.begin_signal(number, name);
                let task = async move {
                    task.await;
                    board.end_signal(number);
                };
                self.begin_task(shown, message, Box::pin(task));
            }
            // Not a fault, because any sender of signals could then stop the run for good.
            Err(error) => {
                let (signal, error) = (visible(name), visible(&error.to_string()));
                warn!(%signal, %error, "cannot decode a signal; it stays unread");
                self.board.set_aside(number);
            }
        }
        Ok(())
    }

    pub(super) fn handle_update(&mut self, update: UpdateId, request: &UpdateRequest) {
        let board = self.board.clone();
        let mut accept = || board.accept_update(update.clone(), request.clone());
        let handler = W::UPDATES.iter().find(|handler| handler.name() == request.name);
        let message = match board.admit_update(&update, request) {
            Ok(message) => message,
            Err(failure) => return board.command(Ask::RejectUpdate { update, failure }),
        };
        let shown = self.begin_handling("update", &request.name, message);
        let progress = match handler {
            Some(handler) => handler.admit(&self.context, &request.input, &mut accept),
            None => {
                let names = W::UPDATES.iter().map(|handler| handler.name());
                Err(unknown::<W>("update", &request.name, names))
            }
        };
        let message = self.end_handling();
        match progress {
            Err(failure) => board.command(Ask::RejectUpdate { update, failure }),
            Ok(UpdateProgress::Done(result)) => {
                board.complete_update(update, outcome::of_update(result))
            }
            Ok(UpdateProgress::Task(task)) => {
                let task =
                    async move { board.complete_update(update, outcome::of_update(task.await)) };
                self.begin_task(shown, message, Box::pin(task));
            }
        }
    }

    /// Records which handler runs, for the message of a panic and for interceptors.
    fn begin_handling(&self, kind: &str, name: &str, message: Option<Rc<Message>>) -> Rc<str> {
        let shown: Rc<str> = format!("{kind} {name}").into();
        self.board.set_handling(Some(shown.clone()));
        self.board.set_handled(message);
        shown
    }

    /// The handler has returned, perhaps with a task; returns its message.
    fn end_handling(&self) -> Option<Rc<Message>> {
        self.board.set_handling(None);
        let message = self.board.handled();
        self.board.set_handled(None);
        message
    }

    fn begin_task(
        &mut self,
        shown: Rc<str>,
        message: Option<Rc<Message>>,
        task: LocalBoxFuture<'static, ()>,
    ) {
        self.tasks.begin(named(self.board.clone(), shown, message, task), &self.board);
    }
}

/// A task that records its handler at every poll.
fn named(
    board: Rc<Board>,
    shown: Rc<str>,
    message: Option<Rc<Message>>,
    mut task: LocalBoxFuture<'static, ()>,
) -> LocalBoxFuture<'static, ()> {
    Box::pin(poll_fn(move |context| {
        board.set_handling(Some(shown.clone()));
        board.set_handled(message.clone());
        let polled = task.as_mut().poll(context);
        board.set_handling(None);
        board.set_handled(None);
        polled
    }))
}
