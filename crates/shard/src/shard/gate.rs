//! Runs that must not change for a moment, because they are being deleted or reset. Work on such a run
//! waits at its gate, and goes on with what is then the run it is meant for.

use std::collections::BTreeMap;

use abide_core::{
    dispatch::Worker,
    ids::{RunId, WorkflowKey},
    operation::CallError,
};

use super::{Shard, Todo};
use crate::{message::Offer, pipeline::BatchNumber};

/// The work that waits at each closed gate.
#[derive(Debug, Default)]
pub(super) struct Gates {
    waiting: BTreeMap<RunId, Vec<Todo>>,
    /// Work to go on with once a batch is durable, by run.
    after: Vec<(BatchNumber, RunId, Todo)>,
}

impl Gates {
    /// Whether the gate of a run is closed.
    pub(super) fn holds(&self, run: RunId) -> bool {
        self.waiting.contains_key(&run)
    }

    /// Takes the matches that wait.
    pub(super) fn take_matched(&mut self) -> Vec<(Offer, Worker)> {
        let waiting = std::mem::take(&mut self.waiting).into_values().flatten();
        waiting.filter_map(Todo::into_match).collect()
    }
}

impl Shard {
    /// Closes the gate of a run.
    pub(super) fn close_gate(&mut self, run: RunId) {
        self.memory.gates.waiting.entry(run).or_default();
    }

    /// Opens the gate of a run.
    pub(super) fn open_gate(&mut self, run: RunId) {
        let waiting = self.memory.gates.waiting.remove(&run).unwrap_or_default();
        self.memory.woken.extend(waiting.into_iter().map(|todo| (run, todo)));
    }

    /// The work, if it need not wait. What closed the gate passes it.
    pub(super) fn pass_gate(&mut self, run: RunId, todo: Todo) -> Option<Todo> {
        if todo.passes_gate(run) {
            return Some(todo);
        }
        let Some(waiting) = self.memory.gates.waiting.get_mut(&run) else { return Some(todo) };
        match todo {
            Todo::Request(ticket, _) if waiting.len() >= self.limits.waiting_requests => {
                self.refuse(ticket, CallError::Overloaded);
            }
            todo => waiting.push(todo),
        }
        None
    }

    /// Goes on with work on a run once all its writes are durable.
    pub(super) fn once_durable(&mut self, run: RunId, todo: Todo) {
        let batch = self.memory.cache.peek(run).map_or(0, |entry| entry.written_in);
        if self.memory.pipeline.durable(batch) {
            return self.with_run(run, todo);
        }
        self.memory.gates.after.push((batch, run, todo));
    }

    /// A commit succeeded: wakes what waited for it.
    pub(super) fn wake_durable(&mut self) {
        let pipeline = &self.memory.pipeline;
        let durable = |(batch, ..): &mut (BatchNumber, RunId, Todo)| pipeline.durable(*batch);
        let woken =
            self.memory.gates.after.extract_if(.., durable).map(|(_, run, todo)| (run, todo));
        self.memory.woken.extend(woken);
    }

    /// Forgets a run that is deleted, and that it was the current one of its workflow.
    pub(super) fn forget_run(&mut self, run: RunId, workflow: &WorkflowKey) {
        self.memory.cache.remove(run);
        self.memory.absent.remove(run);
        // A search that began before may still find it.
        if let Some(search) = self.memory.heads.get_mut(workflow) {
            search.stale = true;
        }
    }
}
