//! Clients that reschedule deadlines of waits: by timer or by wait, with and without a key, and
//! sometimes in ways that must be refused.

use std::time::Duration;

use abide_core::{
    ids::Key,
    operation::{RescheduleTimer, RunOperation, RunTarget},
    run::{Movable, Run, WaitKey},
    time::Timestamp,
};

use super::{World, clients::exactly};
use crate::checks::promises::KEYED;

impl World {
    /// Reschedules the deadline of something that a run waits for now.
    pub(super) fn draw_move(&mut self, number: usize) -> Option<RunOperation> {
        let waiting = |run: &&Run| run.open() && !(run.timers.is_empty() && run.waits.is_empty());
        let stories = self.ledger.stories.values();
        let runs: Vec<_> = stories.map(|story| &story.run).filter(waiting).collect();
        let run = *self.rng.pick(&runs)?;
        let target = exactly(run.workflow.clone(), run.id);
        let timers: Vec<_> = run.timers.keys().cloned().map(Movable::Timer).collect();
        let waits: Vec<_> =
            run.shown_waits().into_iter().map(|wait| Movable::Wait(wait.key)).collect();
        let what = match self.rng.weighted(&[10, 8, 1]) {
            0 => self.rng.pick(&timers).cloned(),
            1 => self.rng.pick(&waits).cloned(),
            _ => Some(Movable::Wait(WaitKey::Timer("no such timer".into()))),
        };
        Some(self.move_to_some_end(number, target, what?))
    }

    pub(super) fn move_to_some_end(
        &mut self,
        number: usize,
        target: RunTarget,
        what: Movable,
    ) -> RunOperation {
        let key = self.rng.chance(700).then(|| Key::from(format!("{KEYED}{number}")));
        let identity =
            key.as_ref().map_or_else(|| format!("client{number}"), |key| key.to_string());
        let fire_at = self.draw_end(&target);
        RescheduleTimer { target, what, fire_at, after: None, identity, key }.into()
    }

    /// Soon, much later, or at a time that is not allowed.
    fn draw_end(&mut self, target: &RunTarget) -> Timestamp {
        let clock = self.clock_for(&target.workflow);
        let in_millis = |millis| clock.saturating_add(Duration::from_millis(millis));
        match self.rng.weighted(&[14, 3, 2, 1]) {
            0 => in_millis(self.rng.below(6000)),
            1 => in_millis(self.rng.between(10_000, 3_600_000)),
            2 => Timestamp::from_unix_millis(clock.unix_millis().saturating_sub(5_000)),
            _ => Timestamp::NEVER,
        }
    }
}
