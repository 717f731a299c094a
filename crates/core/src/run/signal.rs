//! Signals: taken once per key, numbered or buffered, never lost.

use super::{Decision, Refusal, Reply, Signal, draft::Draft};
use crate::event::Body;

pub(super) fn receive(mut draft: Draft<'_>, input: Signal) -> Result<Decision, Refusal> {
    let run = &*draft.run;
    // After a refused close, a steady stream of signals must not keep the run open forever.
    if run.close_refused && run.volatile.turn.is_some() {
        return Err(Refusal::Busy);
    }
    draft.room()?;
    draft.input_body(Body::new(input.signal).with_extension(input.extension));
    Ok(draft.finish(Reply::Done))
}
