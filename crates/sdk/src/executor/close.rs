//! How a run ends when its main task returns.

use abide_core::{
    command::{Ask, ContinueAsNew},
    event::RunSpec,
};

use super::board::Board;
use crate::{
    definition::Workflow,
    error::{Error, NextRun},
    payload,
    raised::Raised,
};

/// Closes the run with what its main task returned.
pub(super) fn close<W: Workflow>(board: &Board, result: Result<W::Output, Raised>) {
    let subject = || format!("result of workflow {}", W::NAME);
    let encode = |value| payload::encode(&value).map_err(|error| Raised::new(error.of(subject())));
    board.command(match result.and_then(encode) {
        Ok(result) => Ask::CompleteRun(result),
        Err(raised) => match raised.find::<Error>() {
            Some(error) if error.is_cancelled() && board.run_cancelled() => {
                Ask::CancelRun(error.cancel_details())
            }
            Some(Error::ContinueAsNew(next)) => continue_as_new::<W>(board, next),
            _ => Ask::FailRun(raised.into_failure()),
        },
    });
}

fn continue_as_new<W: Workflow>(board: &Board, next: &NextRun) -> Ask {
    let declared: Vec<_> = W::SIGNALS.iter().map(|signal| signal.name()).collect();
    Ask::ContinueAsNew(Box::new(ContinueAsNew {
        spec: RunSpec { input: next.input.clone(), ..board.started().spec.clone() },
        signals: board.open_signals(&declared),
        updates: board.open_updates(),
    }))
}
