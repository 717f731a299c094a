//! Queries: read-only tasks that are never stored. A query waits for a pending or started workflow
//! task that has news for the code, then runs on the last completed state.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    dispatch::{Dispatch, QueueKey, WorkKind, Worker},
    failure::Failure,
    ids::{RunId, SessionId},
    operation::{CallError, QueryAnswer, QueryRequest, Ticket},
    payload::Payloads,
    report::{QueryToken, ReportAnswer},
    run::{Refusal, Task},
};

use super::Shard;
use crate::message::{Offer, Output, Work};

/// A query without an answer.
#[derive(Debug)]
pub(super) struct PendingQuery {
    run: RunId,
    query: QueryRequest,
    attempt: u32,
    given_to: Option<SessionId>,
}

/// All queries without an answer, also by run: each transition looks for those of its run.
#[derive(Debug, Default)]
pub(super) struct Queries {
    pending: BTreeMap<Ticket, PendingQuery>,
    of_run: BTreeMap<RunId, BTreeSet<Ticket>>,
}

impl Queries {
    fn count(&self, run: RunId) -> usize {
        self.of_run.get(&run).map_or(0, BTreeSet::len)
    }

    fn insert(&mut self, ticket: Ticket, query: PendingQuery) {
        self.of_run.entry(query.run).or_default().insert(ticket);
        self.pending.insert(ticket, query);
    }

    pub(super) fn remove(&mut self, ticket: Ticket) {
        let Some(query) = self.pending.remove(&ticket) else { return };
        if let Some(tickets) = self.of_run.get_mut(&query.run) {
            tickets.remove(&ticket);
            if tickets.is_empty() {
                self.of_run.remove(&query.run);
            }
        }
    }

    /// The queries of a run that no worker has.
    fn waiting_for(&self, run: RunId) -> Vec<Ticket> {
        let tickets = self.of_run.get(&run).into_iter().flatten().copied();
        let waits = |ticket: &Ticket| {
            self.pending.get(ticket).is_some_and(|query| query.given_to.is_none())
        };
        tickets.filter(waits).collect()
    }
}

impl Shard {
    pub(super) fn query(&mut self, run: RunId, ticket: Ticket, query: QueryRequest) {
        if self.memory.queries.count(run) >= self.limits.run_waiters {
            return self.refuse(ticket, CallError::Overloaded);
        }
        let pending = PendingQuery { run, query, attempt: 0, given_to: None };
        self.memory.queries.insert(ticket, pending);
        self.offer_query(ticket);
    }

    /// The run changed: offers queries that waited for its task.
    pub(super) fn wake_queries(&mut self, run: RunId) {
        for ticket in self.memory.queries.waiting_for(run) {
            self.offer_query(ticket);
        }
    }

    /// Offers a query, unless the run's code is about to change its state.
    pub(super) fn offer_query(&mut self, ticket: Ticket) {
        let Some(query) = self.memory.queries.pending.get(&ticket) else { return };
        let Some(entry) = self.memory.cache.peek(query.run) else { return };
        let run = &entry.run;
        if let Task::Retry(retry) = &run.task
            && let Some(blocked) = &retry.blocked
        {
            let error = CallError::Blocked(Box::new(blocked.clone()));
            self.memory.queries.remove(ticket);
            return self.reply(ticket, Err(error));
        }
        // Its task is not scheduled before its time, which may be far away: the caller does not wait for that.
        if let Some(begins_at) = run.first_task_at.filter(|at| run.open() && *at > self.now()) {
            self.memory.queries.remove(ticket);
            return self.reply(ticket, Err(Refusal::NotBegun { begins_at }.into()));
        }
        if run.open() && (run.news_pending() || run.completed == 0) {
            // The store accepts no writes, so no task can complete: there is nothing to wait for.
            if let Some(why) = self.memory.read_only.clone() {
                self.memory.queries.remove(ticket);
                self.reply(ticket, Err(CallError::Unavailable(why)));
            }
            return;
        }
        let queue = QueueKey {
            namespace: run.workflow.namespace.clone(),
            queue: run.spec.queue.clone(),
            kind: WorkKind::Workflow,
        };
        let offer = Offer {
            queue,
            shard: self.id,
            workflow: run.workflow.clone(),
            run: run.id,
            work: Work::Query(ticket),
            prefer: entry.affinity.clone(),
            except: Default::default(),
        };
        let run = run.id;
        self.emit_after(run, Output::Offer(offer));
    }

    pub(super) fn give_query(&mut self, run: RunId, offer: Offer, worker: Worker) {
        let Work::Query(ticket) = offer.work else { return };
        let pending =
            self.memory.queries.pending.get_mut(&ticket).filter(|query| query.given_to.is_none());
        let (Some(pending), Some(entry)) = (pending, self.memory.cache.peek(run)) else {
            return self.emit(Output::Unmatched(offer, worker));
        };
        pending.attempt += 1;
        pending.given_to = Some(worker.session.clone());
        let workflow = entry.run.workflow.clone();
        let dispatch = Dispatch::Query {
            token: QueryToken { workflow, run, ticket, attempt: pending.attempt },
            last_event: entry.run.last_event,
            query: pending.query.clone(),
        };
        self.emit_after(run, Output::Dispatch(worker, Box::new(dispatch)));
    }

    pub(super) fn query_answered(
        &mut self,
        ticket: Ticket,
        token: &QueryToken,
        answer: Result<Payloads, Failure>,
    ) {
        match self.memory.queries.pending.get(&token.ticket) {
            Some(query) if query.run == token.run && query.attempt == token.attempt => {
                let run = query.run;
                self.memory.queries.remove(token.ticket);
                self.reply(token.ticket, Ok(QueryAnswer(answer).into()));
                self.acknowledge(ticket, Ok(ReportAnswer::Done { run, repeat: false }));
            }
            _ => self.acknowledge(ticket, Err(CallError::StaleQuery)),
        }
    }

    /// Requeues the queries of a lost worker.
    pub(super) fn take_back_queries(&mut self, session: &SessionId) {
        let lost: Vec<_> = self
            .memory
            .queries
            .pending
            .iter_mut()
            .filter(|(_, query)| query.given_to.as_ref() == Some(session))
            .map(|(ticket, query)| {
                query.given_to = None;
                (*ticket, query.run)
            })
            .collect();
        for (ticket, run) in lost {
            self.with_run(run, super::Todo::Requery(ticket));
        }
    }

    /// Offers all queries without a worker again.
    pub(super) fn reoffer_queries(&mut self) {
        let waiting: Vec<_> = self
            .memory
            .queries
            .pending
            .iter()
            .filter(|(_, query)| query.given_to.is_none())
            .map(|(ticket, query)| (*ticket, query.run))
            .collect();
        for (ticket, run) in waiting {
            self.with_run(run, super::Todo::Requery(ticket));
        }
    }
}
