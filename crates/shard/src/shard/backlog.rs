//! Task rows in the store: offered when the shard is opened, and again when a queue that turned
//! them away has room.

use std::collections::BTreeSet;

use abide_core::{
    dispatch::{QueueKey, WorkKind},
    ids::{NamespaceId, RunId, WorkflowKey},
};
use abide_store::rows::{TaskKey, TaskPhase, TaskRow};

use super::{Reading, Shard, Todo};
use crate::message::{Fetch, Offer, Output, Work};

/// Number of queues of which a shard remembers where the last refill ended.
const REFILLED_MAX: usize = 1_000;

/// Number of queues with held workflow tasks that a shard remembers by name.
const HELD_MAX: usize = 1_000;

/// The queues that have, or had since the shard was opened, workflow tasks which only their run can
/// offer: it is blocked, paused, or waits for the end of a task.
#[derive(Debug, Default)]
pub(super) struct HeldQueues {
    queues: BTreeSet<(NamespaceId, String)>,
    /// There are more than are remembered.
    more: bool,
}

impl HeldQueues {
    /// Takes note of a task row that is written or was read.
    pub(super) fn see(&mut self, row: &TaskRow) {
        if self.more || (row.phase, row.key.kind) != (TaskPhase::Held, WorkKind::Workflow) {
            return;
        }
        self.queues.insert((row.key.namespace.clone(), row.key.queue.clone()));
        if self.queues.len() > HELD_MAX {
            (self.more, self.queues) = (true, BTreeSet::new());
        }
    }

    /// Whether the queue may have held tasks.
    fn may_have(&self, queue: &QueueKey) -> bool {
        let named = || self.queues.contains(&(queue.namespace.clone(), queue.queue.clone()));
        queue.kind == WorkKind::Workflow && (self.more || named())
    }
}

/// A search for task rows of a queue.
#[derive(Debug)]
pub(super) struct Refill {
    queue: QueueKey,
    /// Key after which the search began.
    from: TaskKey,
    /// Number of tasks that may still be offered.
    left: usize,
    /// The search has wrapped around to the beginning of the queue.
    wrapped: bool,
}

impl Shard {
    /// Scans all task rows after the shard was opened, to offer ready work and to track attempts.
    pub(super) fn scan_tasks(&mut self, after: Option<TaskKey>) {
        self.fetch(Reading::Tasks, Fetch::Tasks(after, self.limits.page_rows));
    }

    pub(super) fn tasks_scanned(&mut self, rows: Vec<TaskRow>) {
        if rows.len() >= self.limits.page_rows {
            self.scan_tasks(rows.last().map(|row| row.key.clone()));
        }
        for row in rows {
            if row.phase == TaskPhase::Started {
                self.await_presentation(row.key.run, row.key.scheduled);
            }
            self.take_row(&row);
        }
    }

    fn offer_row(&mut self, row: &TaskRow) {
        let work = match row.key.kind {
            WorkKind::Workflow => Work::Workflow,
            WorkKind::Activity => Work::Activity(row.key.scheduled),
        };
        let offer = Offer {
            queue: QueueKey {
                namespace: row.key.namespace.clone(),
                queue: row.key.queue.clone(),
                kind: work.kind(),
            },
            shard: self.id,
            workflow: WorkflowKey {
                namespace: row.key.namespace.clone(),
                workflow: row.workflow.clone(),
            },
            run: row.key.run,
            work,
            prefer: self.session_of(row.key.run),
            except: BTreeSet::new(),
        };
        self.emit(Output::Offer(offer));
    }

    /// A queue has room again. The search continues where the last one ended, and offers more than
    /// the queue can hold: an offer that the queue turns away makes it ask again.
    pub(super) fn refill(&mut self, queue: &QueueKey) {
        let most = 2 * self.limits.queued_offers + 1;
        let from = self.memory.refilled.remove(queue).unwrap_or_else(|| first_task(queue));
        let queue = queue.clone();
        self.read_refill(Refill { queue, from: from.clone(), left: most, wrapped: false }, from);
        self.reoffer_updates();
        self.reoffer_queries();
    }

    /// Workers of a new build have connected: any blocked run of the queue may fit it. Workers name
    /// queues freely, so a queue without such runs costs no read.
    pub(super) fn new_build(&mut self, queue: &QueueKey) {
        if !self.memory.held.may_have(queue) {
            return;
        }
        let from = first_task(queue);
        let (queue, all) = (queue.clone(), usize::MAX);
        self.read_refill(Refill { queue, from: from.clone(), left: all, wrapped: false }, from);
    }

    fn read_refill(&mut self, refill: Refill, after: TaskKey) {
        let fetch = Fetch::Tasks(Some(after), self.limits.page_rows);
        self.fetch(Reading::Refill(Box::new(refill)), fetch);
    }

    pub(super) fn refill_read(&mut self, mut refill: Refill, rows: Vec<TaskRow>) {
        let full = rows.len() >= self.limits.page_rows;
        for row in &rows {
            if !holds(&refill.queue, &row.key) {
                return self.wrap_refill(refill);
            }
            if refill.left == 0 || (refill.wrapped && row.key > refill.from) {
                // A queue whose place is forgotten begins again with its first task.
                if self.memory.refilled.len() >= REFILLED_MAX {
                    self.memory.refilled.pop_first();
                }
                self.memory.refilled.insert(refill.queue, row.key.clone());
                return;
            }
            if row.phase == TaskPhase::Ready {
                refill.left -= 1;
            }
            self.take_row(row);
        }
        match rows.last() {
            Some(last) if full => self.read_refill(refill, last.key.clone()),
            _ => self.wrap_refill(refill),
        }
    }

    /// At the end of the queue: continues with the rows before the start of the search.
    fn wrap_refill(&mut self, refill: Refill) {
        let first = first_task(&refill.queue);
        if !refill.wrapped && refill.from != first {
            self.read_refill(Refill { wrapped: true, ..refill }, first);
        }
    }

    /// Offers the task of a row, or lets its run decide.
    fn take_row(&mut self, row: &TaskRow) {
        self.memory.held.see(row);
        match (row.phase, row.key.kind) {
            (TaskPhase::Ready, _) => self.offer_row(row),
            // The run is blocked, paused, or has inputs that wait for a task's end: it must decide.
            (TaskPhase::Held, WorkKind::Workflow) => self.with_run(row.key.run, Todo::Reoffer),
            (TaskPhase::Started, _) | (TaskPhase::Held, WorkKind::Activity) => {}
        }
    }

    /// Tasks caused only by updates have no row, so they are offered from memory.
    fn reoffer_updates(&mut self) {
        let waiting: Vec<_> = self
            .memory
            .cache
            .iter()
            .filter(|(_, entry)| !entry.run.volatile.admitted.is_empty())
            .map(|(run, _)| *run)
            .collect();
        for run in waiting {
            self.offer_task(run);
        }
        for offer in self.absent_offers() {
            self.emit(Output::Offer(offer));
        }
    }
}

fn holds(queue: &QueueKey, task: &TaskKey) -> bool {
    task.namespace == queue.namespace && task.queue == queue.queue && task.kind == queue.kind
}

/// A key before all tasks of the queue.
fn first_task(queue: &QueueKey) -> TaskKey {
    TaskKey {
        namespace: queue.namespace.clone(),
        queue: queue.queue.clone(),
        kind: queue.kind,
        run: RunId::MIN,
        scheduled: 0,
    }
}
