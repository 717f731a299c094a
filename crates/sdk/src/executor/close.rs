//! How a run ends when its main task returns: which handlers it waits for, and its last command.

use std::rc::Rc;

use abide_core::{
    command::{Ask, ContinueAsNew},
    event::RunSpec,
    payload::Payloads,
};
use tracing::warn;

use super::board::Board;
use crate::{
    context::{Context, NextRun},
    definition::{UnfinishedHandlers, Workflow},
    error::Error,
    interceptor::OutgoingKind,
    payload,
    returned::ReturnedError,
};

/// Closes the run with the result of its main task; `returned` if that has returned a value.
pub(super) async fn close<W: Workflow>(
    ctx: &Context<W>,
    returned: bool,
    result: impl FnOnce() -> Result<Payloads, ReturnedError>,
) {
    if returned && W::UNFINISHED_HANDLERS == UnfinishedHandlers::Wait {
        // Messages that came with this task are in history: their senders got an acknowledgement.
        ctx.board().messages_shown().await;
        while ctx.board().handlers_run() {
            // A cancel request ends the wait, like any other, but handlers may have to clean up.
            drop(ctx.running_handlers().await);
            ctx.board().messages_shown().await;
        }
    }
    let board = ctx.board();
    let ask = match result() {
        Ok(result) => Ask::CompleteRun(result),
        Err(returned) => match returned.find::<Error>() {
            Some(error) if error.is_cancelled() && board.run_cancelled() => {
                Ask::CancelRun(error.cancel_details())
            }
            Some(Error::ContinueAsNew(next)) => continue_as_new::<W>(board, next),
            _ => Ask::FailRun(returned.into_failure()),
        },
    };
    if board.handlers_run() && !matches!(ask, Ask::ContinueAsNew(_)) {
        let handlers = board.shown_handlers();
        warn!(handlers, "the run closes before its handlers have finished; they are abandoned");
    }
    board.command(ask);
}

/// The encoded result of a run.
pub(super) fn encoded<W: Workflow>(
    result: Result<W::Output, ReturnedError>,
) -> Result<Payloads, ReturnedError> {
    let subject = || format!("result of workflow {}", W::NAME);
    let encode =
        |value| payload::encode(&value).map_err(|error| ReturnedError::new(error.of(subject())));
    result.and_then(encode)
}

fn continue_as_new<W: Workflow>(board: &Rc<Board>, next: &NextRun) -> Ask {
    let mut spec = next.spec().clone();
    let RunSpec { workflow_type, header, .. } = &mut spec;
    let named = (&**workflow_type, Some(&board.started().workflow));
    board.outgoing(OutgoingKind::ContinueAsNew, named, header);
    let declared: Vec<_> = W::SIGNALS.iter().map(|signal| signal.name()).collect();
    Ask::ContinueAsNew(Box::new(ContinueAsNew {
        spec,
        signals: board.open_signals(&declared),
        updates: board.open_updates(),
    }))
}
