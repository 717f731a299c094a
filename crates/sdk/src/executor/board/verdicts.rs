//! Whether a signal or update reaches its handler. It is decided once, when the message arrives;
//! replay follows what history says, whatever interceptors and codecs there are by then. A refused
//! signal is recorded as a marker; an update that history does not accept was rejected.
//!
//! | signal | outside of replay | on replay, without marker |
//! |---|---|---|
//! | an interceptor refuses it | marker | handled |
//! | it can never be decoded | marker | the task fails |
//! | it cannot be decoded yet | the task fails | the task fails |
//! | any other | handled | handled |

use std::{collections::BTreeSet, rc::Rc};

use abide_core::{
    command::Ask,
    event::{Marker, MarkerKind, SignalReceived, UpdateRequest},
    failure::Failure,
    ids::{EventNumber, UpdateId},
    visible::visible,
};
use tracing::warn;

use super::{Board, markers::marker};
use crate::{
    executor::fault,
    interceptor::{Headers, Message, MessageKind},
    registry::TaskFault,
    unread,
};

/// The kind of the marker of a refused signal, whose id is the number of the signal's event.
const SIGNAL_REFUSED: &str = "abide.signal-refused";

/// How many characters of a reason are recorded.
const REASON_CHARS_MAX: usize = 1_000;

/// What history has for a turn that is replayed.
#[derive(Default)]
pub(in crate::executor) struct Recorded {
    pub(in crate::executor) markers: Vec<Marker>,
    /// Updates that the turn accepted.
    pub(in crate::executor) accepted: BTreeSet<UpdateId>,
}

/// A message that may be handled, as interceptors see it, if there are any.
pub(in crate::executor) type AdmittedMessage = Option<Rc<Message>>;

impl Board {
    pub(super) fn set_recorded(&self, recorded: Recorded) {
        let mut shared = self.shared.borrow_mut();
        shared.markers.recorded = recorded.markers;
        shared.handlers.accepted = recorded.accepted;
    }

    /// Whether a signal reaches its handler. A refusal is recorded. While that cannot be told, the task
    /// fails.
    pub(in crate::executor) fn admit_signal(
        self: &Rc<Self>,
        number: EventNumber,
        signal: &SignalReceived,
    ) -> Result<Option<AdmittedMessage>, TaskFault> {
        let message = self.intercepted(|| Message {
            kind: MessageKind::Signal,
            name: signal.name.clone(),
            id: number.to_string(),
            headers: Headers(signal.header.clone()),
        });
        let recorded =
            self.shared.borrow_mut().markers.take(&signal_refused(), &number.to_string());
        let refusal = match (recorded, unread::reason(signal)) {
            (Some(recorded), _) => recorded,
            // The run has closed in this turn: the next one gets the signal.
            (None, Some(_)) if self.silent() => return Ok(None),
            (None, Some(unread)) if unread.never && !self.replaying() => {
                refusal(number, signal, &format!("its data cannot be decoded: {}", unread.why))
            }
            (None, Some(unread)) => {
                return Err(fault::unread_signal(number, &signal.name, &unread));
            }
            (None, None) if self.replaying() => return Ok(Some(message)),
            (None, None) => match self.judge(message.as_deref()) {
                Ok(()) => return Ok(Some(message)),
                Err(why) => refusal(number, signal, &why),
            },
        };
        self.command(Ask::RecordMarker(refusal));
        Ok(None)
    }

    /// Whether an update reaches its handler, which may still reject it.
    pub(in crate::executor) fn admit_update(
        self: &Rc<Self>,
        update: &UpdateId,
        request: &UpdateRequest,
    ) -> Result<AdmittedMessage, Failure> {
        let message = self.intercepted(|| Message {
            kind: MessageKind::Update,
            name: request.name.clone(),
            id: update.to_string(),
            headers: Headers(request.header.clone()),
        });
        if self.replaying() {
            return match self.shared.borrow().handlers.accepted.contains(update) {
                true => Ok(message),
                // Its sender had the reason; a rejection leaves no trace.
                false => Err(refused("it was rejected".into())),
            };
        }
        self.judge(message.as_deref()).map_err(refused)?;
        Ok(message)
    }

    /// A run that has closed in this turn refuses nothing: the next run may get the message.
    fn judge(self: &Rc<Self>, message: Option<&Message>) -> Result<(), String> {
        match message.filter(|_| !self.silent()) {
            Some(message) => self.arrives(message),
            None => Ok(()),
        }
    }
}

/// The failure of a message that is refused.
pub(in crate::executor) fn refused(why: String) -> Failure {
    Failure { message: why, error_type: "Refused".into(), ..Failure::default() }
}

/// Whether the command records a verdict, which code does not ask for.
pub(super) fn is_verdict(ask: &Ask) -> bool {
    matches!(ask, Ask::RecordMarker(marker) if marker.kind == signal_refused())
}

fn signal_refused() -> MarkerKind {
    MarkerKind::Named(SIGNAL_REFUSED.into())
}

/// The record of a signal that is refused now.
fn refusal(number: EventNumber, signal: &SignalReceived, why: &str) -> Marker {
    let why: String = why.chars().take(REASON_CHARS_MAX).collect();
    warn!(signal = %visible(&signal.name), why = %visible(&why), "a signal is refused");
    let refusal = marker(signal_refused(), number.to_string(), [].into());
    Marker { failure: Some(refused(why)), ..refusal }
}
