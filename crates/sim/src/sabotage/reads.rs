//! Bugs in what machines read: existing rows that are missed.

use abide_shard::message::{Fetch, Fetched};
use abide_store::rows::Loaded;

use super::{Bug, Saboteur};

impl Saboteur {
    pub fn fetched(&mut self, fetch: &Fetch, mut fetched: Fetched) -> Fetched {
        if self.bug.is_none() {
            return fetched;
        }
        match (fetch, &mut fetched) {
            (_, Fetched::Log(rows) | Fetched::Load(Loaded { log: rows, .. }))
                if rows.last().is_some_and(|row| row.sequence > 1)
                    && self.strikes(Bug::StaleLogRead) =>
            {
                rows.pop();
            }
            (_, Fetched::Inbox(row)) if self.bug == Some(Bug::BlindInbox) => *row = None,
            (_, Fetched::Outbox(rows)) if self.bug == Some(Bug::BlindOutbox) => rows.clear(),
            (Fetch::Tasks(None, _), Fetched::Tasks(rows)) if self.bug == Some(Bug::BlindTasks) => {
                rows.clear();
            }
            (Fetch::Due(_, _, limit), Fetched::Due(rows))
                if rows.len() < *limit && self.strikes(Bug::BlindTimers) =>
            {
                rows.pop();
            }
            (Fetch::RunsOf(workflow, _), Fetched::Runs(rows))
                if workflow.before.is_none() && self.strikes(Bug::WorkflowNotFound) =>
            {
                rows.clear();
            }
            _ => {}
        }
        fetched
    }
}
