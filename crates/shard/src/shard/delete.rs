//! Deletion of a closed run: its row, its log and its snapshot go in one batch. A closed run has no
//! other rows, except effects that are not delivered yet, and those keep it.

use abide_core::{
    ids::RunId,
    operation::{Done, Ticket},
    run::Refusal,
};
use abide_store::Write;

use super::{Shard, Todo};

impl Shard {
    pub(super) fn delete(&mut self, run: RunId, ticket: Ticket) {
        let Some(entry) = self.memory.cache.get(run) else { return };
        if entry.run.open() {
            return self.reply_after(run, ticket, Err(Refusal::RunOpen.into()));
        }
        let undelivered = u64::try_from(entry.run.outbox.len()).unwrap_or(u64::MAX);
        if undelivered > 0 {
            return self.reply_after(run, ticket, Err(Refusal::Undelivered(undelivered).into()));
        }
        entry.written_in = self.memory.pipeline.push(Some(run), vec![Write::DeleteRun(run)]);
        // The store still shows the run until then.
        self.close_gate(run);
        self.once_durable(run, Todo::Deleted);
        self.reply_after(run, ticket, Ok(Done { run, repeat: false, fire_at: None }.into()));
    }

    pub(super) fn deleted(&mut self, run: RunId) {
        let workflow = self.memory.cache.peek(run).map(|entry| entry.run.workflow.clone());
        if let Some(workflow) = workflow {
            self.forget_run(run, &workflow);
        }
        self.open_gate(run);
    }
}
