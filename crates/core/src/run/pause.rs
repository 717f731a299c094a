//! Pause: inputs are recorded, timers fire into history, running attempts continue and a started
//! task may complete, but nothing new is scheduled or handed out until the pause ends.

use super::{Decision, Refusal, Reply, Run, Touch, draft::Draft};
use crate::event::{Fact, RunPaused, RunUnpaused};

pub(super) fn pause(mut draft: Draft<'_>, paused: RunPaused) -> Result<Decision, Refusal> {
    if draft.run.paused_with_buffer() {
        return Err(Refusal::Paused);
    }
    draft.buffer_room()?;
    draft.input(paused);
    Ok(draft.finish(Reply::Done))
}

pub(super) fn unpause(mut draft: Draft<'_>, unpaused: RunUnpaused) -> Result<Decision, Refusal> {
    if !draft.run.paused_with_buffer() {
        return Err(Refusal::NotPaused);
    }
    draft.buffer_room()?;
    draft.input(unpaused);
    Ok(draft.finish(Reply::Done))
}

impl Run {
    pub(super) fn apply_paused(&mut self, paused: bool) {
        self.paused = paused;
        self.touch(Touch::Run);
        self.touch(Touch::Task);
        self.touch(Touch::Deadlines);
        let activities: Vec<_> = self.activities.keys().copied().collect();
        for scheduled in activities {
            self.touch(Touch::Activity(scheduled));
        }
    }

    /// Whether the run is paused, or will be when the task in flight ends. Inputs are checked
    /// against this, and people see it.
    pub fn paused_with_buffer(&self) -> bool {
        self.buffer
            .iter()
            .rev()
            .find_map(|body| {
                #[expect(clippy::wildcard_enum_match_arm, reason = "only pauses matter here")]
                match body.fact {
                    Fact::RunPaused(_) => Some(true),
                    Fact::RunUnpaused(_) => Some(false),
                    _ => None,
                }
            })
            .unwrap_or(self.paused)
    }
}
