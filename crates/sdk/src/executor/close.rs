//! How a run ends when its main task returns.

use abide_core::{
    command::{Ask, ContinueAsNew},
    event::RunSpec,
    payload::Payloads,
};

use super::board::Board;
use crate::{definition::Workflow, error::Error, payload, raised::Raised};

/// The result of the main task as it travels.
pub(super) fn encoded<W: Workflow>(result: Result<W::Output, Raised>) -> Result<Payloads, Raised> {
    let subject = || format!("result of workflow {}", W::NAME);
    payload::encode(&result?).map_err(|error| Raised::new(error.of(subject())))
}

/// Closes the run with what its main task returned.
pub(super) fn close(board: &Board, result: Result<Payloads, Raised>) {
    let error = match result {
        Ok(result) => return board.command(Ask::CompleteRun(result)),
        Err(raised) => raised.downcast::<Error>().map(|error| *error),
    };
    board.command(match error {
        Ok(Error::Cancelled) if board.cancel_requested() => Ask::CancelRun(Vec::new()),
        Ok(Error::ContinueAsNew(next)) => Ask::ContinueAsNew(Box::new(ContinueAsNew {
            spec: RunSpec { input: next.input, ..board.started().spec.clone() },
            signals: board.unread_signals(),
            updates: board.open_updates(),
        })),
        Ok(error) => Ask::FailRun(error.into_failure()),
        Err(raised) => Ask::FailRun(raised.into_failure()),
    });
}
