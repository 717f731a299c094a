//! Signals: taken once per key, numbered or buffered, never lost.

use super::{Decision, Refusal, Reply, Run, Signal, draft::Draft};
use crate::event::{Body, SignalReceived};

pub(super) fn receive(mut draft: Draft<'_>, input: Signal) -> Result<Decision, Refusal> {
    let run = &*draft.run;
    if input.signal.key.as_ref().is_some_and(|key| run.signal_keys.contains(key)) {
        return Ok(draft.finish(Reply::Repeat));
    }
    // After a refused close, a steady stream of signals must not keep the run open for ever.
    if run.close_refused && run.volatile.turn.is_some() {
        return Err(Refusal::Busy);
    }
    draft.room()?;
    draft.input_body(Body::new(input.signal).with_extension(input.extension));
    Ok(draft.finish(Reply::Done))
}

impl Run {
    pub(super) fn remember_signal(&mut self, signal: &SignalReceived) {
        if let Some(key) = &signal.key {
            self.signal_keys.insert(key);
        }
    }
}
