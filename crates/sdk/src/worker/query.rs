//! Queries on their thread, answered from the state after the last completed task. The part of the
//! log that the machine in memory lacks is read first; without a machine the whole log is read.

use std::sync::Arc;

use abide_core::{
    failure::{Failure, FailureKind},
    operation::RunTarget,
    payload::Payloads,
};

use super::{
    ack::Ack,
    cached_run::{CachedRun, Trouble},
    history::{self, Log},
    thread::WorkflowThread,
    thread_message::{QueryLog, QueryMessage, ThreadMessage},
};

impl WorkflowThread {
    /// Answers a query, or first reads the log that it needs.
    pub(super) fn query(&mut self, mut query: QueryMessage) {
        let run = query.token.run;
        match std::mem::replace(&mut query.log, QueryLog::Unread) {
            QueryLog::Unread => match self.cache.take(run) {
                Some(machine) if machine.seen() == query.last_event => {
                    self.answer_from(query, machine);
                }
                Some(machine) => {
                    let from = machine.log_position();
                    let gone = self.cache.keep(run, machine);
                    self.read_for_query(query, from, QueryLog::Rest);
                    drop(gone);
                }
                None => self.read_for_query(query, 0, QueryLog::Whole),
            },
            QueryLog::Unanswerable(failure) => self.answer(query, Err(failure)),
            QueryLog::Rest(Ok(log)) => {
                let machine = self.cache.take(run);
                match machine.and_then(|machine| catch_up(machine, log, query.last_event)) {
                    Some(machine) => self.answer_from(query, machine),
                    None => self.read_for_query(query, 0, QueryLog::Whole),
                }
            }
            QueryLog::Whole(Ok(log)) => match self.settled(log) {
                Ok(machine) => self.answer_from(query, machine),
                Err(trouble) => {
                    let message = trouble.message(&self.shared);
                    self.answer(query, Err(Failure::server(FailureKind::Application, message)));
                }
            },
            QueryLog::Rest(Err(unread)) | QueryLog::Whole(Err(unread)) => {
                let message = format!("the worker has no history of the run: {unread}");
                self.answer(query, Err(Failure::server(FailureKind::Server, message)));
            }
        }
    }

    fn settled(&mut self, log: Log) -> Result<CachedRun, Trouble> {
        let mut machine = self.replayed(log.events)?;
        machine.settle()?;
        machine.read_to(log.end);
        Ok(machine)
    }

    fn read_for_query(
        &self,
        query: QueryMessage,
        from: u64,
        wrap: fn(Result<Log, history::UnreadLog>) -> QueryLog,
    ) {
        let shared = Arc::clone(&self.shared);
        self.read_beside(async move {
            let target =
                RunTarget { workflow: query.token.workflow.clone(), run: Some(query.token.run) };
            let log = history::read(&shared, &query.sender, target, from, query.last_event).await;
            ThreadMessage::Query(Box::new(QueryMessage { log: wrap(log), ..query }))
        });
    }

    fn answer_from(&mut self, query: QueryMessage, mut machine: CachedRun) {
        self.watched.runs(machine.workflow_type());
        let answer = machine.query(&query.query);
        self.shared.metrics.workflow(Some(machine.workflow_type())).query(answer.is_ok());
        let gone = self.cache.keep(query.token.run, machine);
        self.answer(query, answer);
        drop(gone);
    }

    fn answer(&mut self, query: QueryMessage, answer: Result<Payloads, Failure>) {
        let QueryMessage { sender, token, query, slot, .. } = query;
        self.expect_ack(Ack::to_query(&self.shared, sender, token, query.name, answer));
        drop(slot);
    }
}

/// The machine after feeding it the rest of its log; none if it does not end at that event.
fn catch_up(mut machine: CachedRun, log: Log, last_event: u64) -> Option<CachedRun> {
    machine.feed(log.events).ok()?;
    machine.settle().ok()?;
    machine.read_to(log.end);
    (machine.seen() == last_event).then_some(machine)
}
