//! Histories whose signals cannot be decoded. Signals come from anyone who may send some; what else is
//! in a history was written by clients and workers of the run. So a signal that cannot be decoded does
//! not hide the rest: it is marked, and the executor decides what becomes of it.

use abide_core::event::{Event, Fact};

use super::{CodecError, CodecProblem, Codecs, Room};
use crate::unread::{self, Unread};

impl Codecs {
    /// Decodes the events of a history, and marks the signals that cannot be decoded.
    pub(crate) async fn decode_events(&self, events: &mut Vec<Event>) -> Result<(), CodecError> {
        let Err(error) = self.decode_all(events).await else { return Ok(()) };
        if error.problem() == CodecProblem::Unavailable || !events.iter().any(is_signal) {
            return Err(error);
        }
        let room = Room::new(self.decoded_max);
        let (mut signals, mut others): (Vec<_>, Vec<_>) =
            std::mem::take(events).into_iter().partition(is_signal);
        self.decode_all_within(&room, &mut others).await?;
        for signal in &mut signals {
            match self.decode_all_within(&room, signal).await {
                Ok(()) => {}
                Err(error) if error.problem() == CodecProblem::Unavailable => return Err(error),
                Err(error) => self.mark(signal, &error),
            }
        }
        others.append(&mut signals);
        others.sort_by_key(|event| event.number);
        *events = others;
        Ok(())
    }

    /// The same for programs without codecs: encoded data cannot be decoded.
    pub(crate) fn check_events(&self, events: &mut Vec<Event>) -> Result<(), CodecError> {
        for event in events {
            match self.check_plain(event) {
                Err(error) if is_signal(event) => self.mark(event, &error),
                checked => checked?,
            }
        }
        Ok(())
    }

    fn mark(&self, event: &mut Event, error: &CodecError) {
        if let Fact::SignalReceived(signal) = &mut event.body.fact {
            let never = self.skip_signals || error.problem() == CodecProblem::Refused;
            unread::mark(signal, &Unread { never, why: error.to_string() });
        }
    }
}

fn is_signal(event: &Event) -> bool {
    matches!(event.body.fact, Fact::SignalReceived(_))
}
