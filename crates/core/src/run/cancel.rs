//! Ends from outside: cancel requests, which code may handle as it likes, and termination.

use super::{Decision, Refusal, Reply, buffer, draft::Draft, task};
use crate::{
    event::{RunCancelRequested, RunCancelled, RunTerminated, TaskFailureCause},
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
    take_request(&mut draft, request);
    Ok(draft.finish(Reply::Done))
}

/// Shows the request to code. A run whose code has not started, because of a delay, a retry or a
/// schedule, has nothing to clean up: it is cancelled immediately.
pub(super) fn take_request(draft: &mut Draft<'_>, request: RunCancelRequested) {
    draft.input(request);
    if draft.run.first_task_at.is_some() {
        draft.event(RunCancelled::default());
    }
}

pub(super) fn terminate(mut draft: Draft<'_>, terminated: RunTerminated) -> Decision {
    end_from_outside(&mut draft);
    draft.event(terminated);
    draft.finish(Reply::Done)
}

/// Ends a started task and numbers what was acknowledged, so that history is complete.
pub(super) fn end_from_outside(draft: &mut Draft<'_>) {
    task::abandon_turn(draft, TaskFailureCause::Closed);
    buffer::release(draft);
}
