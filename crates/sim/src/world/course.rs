//! Requests that change the course of a run: resets and deletions.

use abide_core::{
    ids::Key,
    operation::{Delete, Reset, RunOperation},
    run::{Reapply, ResetPoint},
};

use super::{World, clients::exactly};
use crate::checks::{course::KEEP_SIGNALS, ledger::Story};

impl World {
    /// Goes back to a task of a run, most often of the current one of its workflow.
    pub(super) fn draw_reset(&mut self, key: Key) -> Option<RunOperation> {
        let earlier = self.rng.chance(200);
        let ledger = &self.ledger;
        let begun = |story: &&Story| !story.deleted && story.run.completed > 0;
        let current = |story: &&Story| {
            let current = ledger.current(&story.run.workflow);
            earlier || current.is_some_and(|current| current.run.id == story.run.id)
        };
        let runs: Vec<_> = ledger.stories.values().filter(begun).filter(current).collect();
        let story = *self.rng.pick(&runs)?;
        let mut target = exactly(story.run.workflow.clone(), story.run.id);
        let to = match self.rng.weighted(&[3, 4, 4, 4, 1]) {
            0 => ResetPoint::FirstTask,
            1 => ResetPoint::LastTask,
            2 => ResetPoint::Event(self.rng.between(1, story.run.last_event)),
            3 => ResetPoint::Failure,
            _ => ResetPoint::Build("right".into()),
        };
        if !earlier && self.rng.chance(300) {
            target.run = None;
        }
        let reapply = Reapply { signals: self.rng.chance(800), updates: self.rng.chance(800) };
        let reason = if reapply.signals { KEEP_SIGNALS.into() } else { String::new() };
        let (identity, key) = (String::from("operator"), Some(key));
        Some(Reset { target, to, reapply, reason, identity, key }.into())
    }

    /// Deletes a run that is closed, or may be when the request arrives.
    pub(super) fn draw_delete(&mut self) -> Option<RunOperation> {
        let open = self.rng.chance(100);
        let runs = self.ledger.stories.values();
        let runs: Vec<_> =
            runs.filter(|story| !story.deleted && story.run.open() == open).collect();
        let story = *self.rng.pick(&runs)?;
        let target = exactly(story.run.workflow.clone(), story.run.id);
        Some(Delete { target, identity: "operator".into() }.into())
    }
}
