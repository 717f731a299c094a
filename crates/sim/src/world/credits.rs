//! Credit: how much work workers accept, what queues know of it, and that both agree.

use abide_core::{
    dispatch::{Dispatch, QueueKey, WorkKind},
    ids::{NamespaceId, WorkflowKey},
};
use abide_shard::node::NodeInput;

use super::{
    World,
    nodes::{NodeEvent, NodeId},
    workers::QUEUE,
};
use crate::checks::{Check, Checked, Violation};

impl World {
    /// The worker can take more.
    pub(super) fn credit(&mut self, index: usize, queue: QueueKey, credits: usize) -> Checked {
        let Some(worker) = self.workers.get_mut(index).filter(|worker| worker.connected) else {
            return Ok(());
        };
        *worker.credits.entry(queue.clone()).or_default() += credits;
        let (stream, node, worker) = (worker.stream, worker.node, worker.taker());
        let given = NodeInput::Credit { stream, queue, worker, credits };
        self.tell_node(node, NodeEvent::Input(Box::new(given)))
    }

    pub(super) fn take_work(&mut self, index: usize, stream: u64, dispatch: Dispatch) -> Checked {
        let Some(worker) = self.workers.get_mut(index) else { return Ok(()) };
        if !worker.connected || worker.stream != stream {
            return Ok(());
        }
        let queue = match &dispatch {
            Dispatch::Workflow { token, .. } => workflow_queue(&token.workflow),
            Dispatch::Query { token, .. } => workflow_queue(&token.workflow),
            Dispatch::Activity { token, .. } => activity_queue(&token.workflow),
        };
        if !matches!(dispatch, Dispatch::Activity { eager: true, .. }) {
            let credits = worker.credits.get_mut(&queue).filter(|credits| **credits > 0);
            let stale = worker.stale.get_mut(&queue).filter(|credits| **credits > 0);
            let Some(credits) = credits.or(stale) else {
                let what = format!("{} got more than it asked for: {queue:?}", worker.session);
                return Err(Violation::new(Check::Credits, what));
            };
            *credits -= 1;
        }
        match dispatch {
            Dispatch::Workflow { token, given, last_event, recent } => {
                self.take_turn(index, token, &given, last_event, recent)
            }
            Dispatch::Query { token, last_event, .. } => self.take_query(index, token, last_event),
            Dispatch::Activity { token, given, eager } => {
                self.take_attempt(index, token, &given, eager);
                Ok(())
            }
        }
    }

    /// When nothing is in flight, the queues know all credit of workers.
    pub(super) fn no_credit_is_lost(&self) -> Checked {
        for worker in self.workers.iter().filter(|worker| worker.connected) {
            for (queue, credits) in &worker.credits {
                let machine = &self.nodes[worker.node].machine;
                let known = machine.credits_of(queue, &worker.session);
                if known < *credits {
                    let session = &worker.session;
                    let what = format!("{session} takes {credits} of {queue:?}, {known} are known");
                    return Err(Violation::new(Check::Credits, what));
                }
            }
        }
        Ok(())
    }

    /// The queues of a node never know more credit than workers gave.
    pub(super) fn no_credit_is_made_up(&self, node: NodeId) -> Checked {
        let machine = &self.nodes[node].machine;
        for (session, stream) in machine.sessions() {
            let worker = self.workers.get(stream.worker);
            let worker = worker.filter(|worker| worker.stream == stream.number);
            let Some(worker) = worker else { continue };
            for (queue, credits) in &worker.credits {
                let stale = worker.stale.get(queue).copied().unwrap_or_default();
                let known = machine.credits_of(queue, session);
                if known > credits + stale {
                    let what = format!("{session} takes {credits} of {queue:?}, {known} are known");
                    return Err(Violation::new(Check::Credits, what));
                }
            }
        }
        Ok(())
    }
}

/// The queue of a workflow's tasks.
pub(super) fn workflow_queue(workflow: &WorkflowKey) -> QueueKey {
    queue(&workflow.namespace, WorkKind::Workflow)
}

/// The queue of a workflow's activities.
pub(super) fn activity_queue(workflow: &WorkflowKey) -> QueueKey {
    queue(&workflow.namespace, WorkKind::Activity)
}

/// The queue of a kind of work.
pub(super) fn queue(namespace: &NamespaceId, kind: WorkKind) -> QueueKey {
    QueueKey { namespace: namespace.clone(), queue: QUEUE.into(), kind }
}
