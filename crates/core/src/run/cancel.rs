//! Ends that come from outside: a request that code may answer as it likes, and termination.

use super::{Decision, Refusal, Reply, buffer, draft::Draft, task};
use crate::{
    event::{RunCancelRequested, RunTerminated, TaskFailureCause},
    note::Note,
};

pub(super) fn request(
    mut draft: Draft<'_>,
    request: RunCancelRequested,
) -> Result<Decision, Refusal> {
    if draft.run.cancel_requested {
        let room = draft.run.cancel_keys.len() < draft.context.limits.carried_keys;
        if let Some(key) = request.key.filter(|_| room) {
            draft.note(Note::CancelRepeated { key });
        }
        return Ok(draft.finish(Reply::Repeat));
    }
    draft.buffer_room()?;
    draft.input(request);
    Ok(draft.finish(Reply::Done))
}

pub(super) fn terminate(mut draft: Draft<'_>, terminated: RunTerminated) -> Decision {
    end_from_outside(&mut draft);
    draft.event(terminated);
    draft.finish(Reply::Done)
}

/// Ends a started task and numbers what was acknowledged, so that nothing is missing from history.
pub(super) fn end_from_outside(draft: &mut Draft<'_>) {
    task::abandon_turn(draft, TaskFailureCause::Closed);
    buffer::release(draft);
}
