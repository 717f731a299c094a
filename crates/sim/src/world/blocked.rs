//! Updates of runs whose code does not fit their history: a caller that does not want to wait for a fix
//! is told at once.

use abide_core::{
    ids::RunId,
    operation::{AwaitUpdate, RunOperation, RunTarget, Ticket, Update},
};
use abide_store::{Batch, Write};

use super::{World, calls::Asked, clients::exactly};
use crate::{
    checks::{Check, Checked, Violation},
    schedule::{Micros, SECOND},
};

/// How soon such a caller is told, if its shard can.
const TOLD_WITHIN: Micros = SECOND;

impl World {
    /// Follows which runs are blocked.
    pub(super) fn note_blocked(&mut self, batch: &Batch) {
        for write in &batch.writes {
            let Write::AppendLog(row) = write else { continue };
            let story = self.ledger.stories.get(&row.run);
            match story.is_some_and(|story| story.run.open() && story.run.replay_blocked()) {
                true => {
                    self.blocked.entry(row.run).or_insert(self.now);
                }
                false => {
                    self.blocked.remove(&row.run);
                }
            }
        }
    }

    /// A blocked run, if there is one.
    pub(super) fn draw_blocked(&mut self) -> Option<RunTarget> {
        let blocked: Vec<_> = self.blocked.keys().copied().collect();
        let story = self.ledger.stories.get(self.rng.pick(&blocked)?)?;
        Some(exactly(story.run.workflow.clone(), story.run.id))
    }

    /// A caller gives up on a call: it must not be one that its shard could have answered because the
    /// run is blocked.
    pub(super) fn blocked_is_told(&self, ticket: Ticket) -> Checked {
        let Some(asked) = self.waiting_call(ticket) else { return Ok(()) };
        let Some(run) = asked.operation().and_then(|operation| self.hurried(operation)) else {
            return Ok(());
        };
        let since = self.blocked.get(&run).copied().max(asked.delivered_at());
        match self.blocked.contains_key(&run) && self.could_tell(asked, run) {
            true if since.is_some_and(|since| since + TOLD_WITHIN < self.now) => {
                let what = "a caller waits for an update, and is not told that the run is blocked";
                Err(Violation::of(Check::Answered, run, what))
            }
            _ => Ok(()),
        }
    }

    /// The run of an update whose caller does not want to wait for a fix.
    fn hurried(&self, operation: &RunOperation) -> Option<RunId> {
        let (target, waits) = match operation {
            RunOperation::Update(Update { target, wait_while_blocked, .. })
            | RunOperation::AwaitUpdate(AwaitUpdate { target, wait_while_blocked, .. }) => {
                (target, *wait_while_blocked)
            }
            _ => return None,
        };
        let current = || self.ledger.current(&target.workflow).map(|story| story.run.id);
        target.run.or_else(current).filter(|_| !waits)
    }

    /// Whether the shard that has the call has the run, knows that it is blocked, and may answer.
    fn could_tell(&self, asked: &Asked, run: RunId) -> bool {
        let Some(id) = asked.slot else { return false };
        let Some(slot) = self.slots.get(&id) else { return false };
        let owner = self.nodes[slot.node].shards.get(&slot.shard) == Some(&id);
        let known = slot.machine.peek(run).is_some_and(|run| run.replay_blocked());
        owner
            && known
            && slot.machine.is_open()
            && !slot.waits()
            && !self.nodes[slot.node].frozen
            && self.nodes[slot.node].trusted(self.now)
    }
}
