//! Notes. A buffered input is stored as the bytes of its body, so that these are kept and copied
//! too.

use bytes::Bytes;

use super::{
    error::DecodeError,
    frame, generated,
    table::{messages, union},
};
use crate::note::{AttemptEnded, AttemptStarted, Note, TaskAttemptFailed};

messages! {
    AttemptStarted { scheduled, attempt, start, at, session, identity }
    AttemptEnded { scheduled, start, at, failure, next_at, counted, heartbeat }
    TaskAttemptFailed { attempt, at, cause, failure, build, blocked }
}

union! {
    Note = note::Case in Note {
        whole {
            InputBuffered,
            AttemptStarted,
            AttemptEnded,
            TaskAttemptFailed,
            ResetTo,
            ScheduleChanged,
            ScheduleStepped,
            ScheduledRunEnded,
        }
        parts {
            BufferReleased(BufferReleased) { dropped },
            Heartbeat(Heartbeat) { scheduled, start, at, details },
            AttemptReady(AttemptReady) { scheduled, at },
            AttemptDetached(AttemptDetached) { scheduled, start },
            UpdateRejected(UpdateRejected) { update, failure },
            EffectSettled(EffectSettled) { number, delivered },
            Repaired(Repaired) { identity },
            CancelRepeated(CancelRepeated) { key },
            AttemptAwaited(AttemptAwaited) { scheduled, start, since },
            AttemptPresented(AttemptPresented) { scheduled, start },
            ParentChanged(ParentChanged) { parent },
        }
    }
}

/// Reads one entry of `Notes.notes`.
pub(super) fn read(bytes: Bytes) -> Result<Note, DecodeError> {
    frame::read_message::<_, generated::Note>("Note", "", &[], bytes)
}
