//! The life of a worker: it connects, takes work, reconnects when the stream ends, and on shutdown
//! finishes its work in flight if there is time.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use abide_core::{dispatch::Dispatch, ids::RunId, operation::CallError, visible::visible};
use bytes::Bytes;
use futures_util::future::join_all;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};

use super::{
    WorkerError,
    ack::Acknowledged,
    activity,
    encoded::unreadable,
    metrics::count,
    notice,
    shared::{TaskSlot, WorkerCore},
    thread_message::{QueryLog, QueryMessage, TaskLog, TaskMessage, ThreadMessage},
    threads::Threads,
};
use crate::{
    backoff::Backoff,
    transport::{Given, Session, SessionSender},
};

/// The longest pause between two tries to connect: much shorter than the engine keeps the attempts
/// of a disconnected worker.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// How often the workflow threads are checked for blocked code.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Life {
    pub(super) shared: Arc<WorkerCore>,
    pub(super) threads: Threads,
    /// How long work in flight may take to finish after shutdown begins.
    pub(super) grace: Duration,
    /// How long a workflow task may block its thread before a warning is logged.
    pub(super) task_deadline: Duration,
    /// Aborts the attempts when the worker is dropped.
    pub(super) _end: SessionEnd,
}

/// Disconnects and aborts all attempts when dropped, however the worker ends.
pub(super) struct SessionEnd(pub(super) Arc<WorkerCore>);

impl Drop for SessionEnd {
    fn drop(&mut self) {
        self.0.disconnected();
        self.0.attempts.abort();
        self.0.metrics.ended(&self.0);
    }
}

/// Why the worker stopped reading a stream.
enum Left<T> {
    Ended,
    /// Shutdown was requested, with this value.
    Told(T),
}

impl Life {
    /// Works until `shutdown` resolves, then finishes the work in flight.
    pub(super) async fn run<T>(
        self,
        mut shutdown: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, WorkerError> {
        let mut backoff = None;
        loop {
            let mut session = tokio::select! {
                biased;
                told = shutdown.as_mut() => {
                    self.end(None).await;
                    return Ok(told);
                }
                session = self.connect(&mut backoff, false) => session?,
            };
            match self.work(&mut *session, &mut backoff, shutdown.as_mut()).await {
                Left::Ended => {
                    count(&self.shared.metrics.connection().disconnects);
                    self.shared.disconnected();
                }
                Left::Told(told) => {
                    self.end(Some(session)).await;
                    return Ok(told);
                }
            }
        }
    }

    /// Connects, retrying all errors but permanent ones. If the last stream ended without
    /// delivering anything, it waits by that stream's `backoff` first, because the next stream may
    /// end as soon.
    async fn connect(
        &self,
        backoff: &mut Option<Backoff>,
        closing: bool,
    ) -> Result<Box<dyn Session>, WorkerError> {
        if let Some(backoff) = backoff {
            sleep(backoff.step()).await;
        }
        let backoff = backoff.get_or_insert(Backoff::new(LONGEST_WAIT));
        let mut told = false;
        loop {
            let WorkerCore { transport, worker, .. } = &*self.shared;
            match transport.connect(worker.clone(), self.shared.takes()).await {
                Ok(session) => {
                    self.shared.connected(&session.sender(), closing);
                    self.shared.present(None);
                    return Ok(session);
                }
                Err(error @ CallError::Invalid(_)) => {
                    return Err(WorkerError::Refused(error.into()));
                }
                Err(error @ CallError::NoAnswer(_)) => {
                    return Err(WorkerError::EngineGone(error.into()));
                }
                Err(error) => {
                    count(&self.shared.metrics.connection().failures);
                    let wait = backoff.scattered_step();
                    let error = visible(&error.to_string());
                    tracing::warn!(%error, "the worker cannot connect; retrying in {wait:?}");
                    if !std::mem::replace(&mut told, true) {
                        notice::without_log(format_args!(
                            "the worker cannot connect, and keeps trying: {error}"
                        ));
                    }
                    sleep(wait).await;
                }
            }
        }
    }

    async fn work<T>(
        &self,
        session: &mut dyn Session,
        backoff: &mut Option<Backoff>,
        mut shutdown: Pin<&mut impl Future<Output = T>>,
    ) -> Left<T> {
        let sender = session.sender();
        let mut watch = interval(WATCH_INTERVAL);
        watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                given = session.next() => match given {
                    Some(given) => {
                        *backoff = None;
                        self.take(&sender, given);
                    }
                    None => return Left::Ended,
                },
                told = shutdown.as_mut() => return Left::Told(told),
                _ = watch.tick() => self.threads.check(self.task_deadline),
            }
        }
    }

    fn take(&self, sender: &Arc<dyn SessionSender>, given: Given) {
        match given {
            Given::Work(dispatch) => self.take_work(sender, dispatch),
            Given::PresentAttempts(shard) => self.shared.present(Some(shard)),
        }
    }

    fn take_work(&self, sender: &Arc<dyn SessionSender>, dispatch: Dispatch) {
        let sender = Arc::clone(sender);
        match dispatch {
            Dispatch::Workflow { token, given, last_event, recent, .. } => {
                let slot = TaskSlot::take(&self.shared);
                let (run, rows, unasked) = (token.run, recent.unwrap_or_default(), Vec::new());
                let (log, arrived) = (TaskLog::Recent(Vec::new()), std::time::Instant::now());
                let order =
                    TaskMessage { sender, token, given, last_event, log, unasked, slot, arrived };
                self.order_task(run, rows, order);
            }
            Dispatch::Query { token, last_event, query } => {
                let slot = TaskSlot::take(&self.shared);
                let log = QueryLog::Unread;
                let order = QueryMessage { sender, token, last_event, query, log, slot };
                self.order_query(order);
            }
            Dispatch::Activity { token, given, eager } => {
                activity::begin(&self.shared, token, *given, eager);
            }
        }
    }

    /// Orders a task at once, or as soon as its payloads are decoded.
    fn order_task(&self, run: RunId, rows: Vec<Bytes>, mut order: TaskMessage) {
        if self.shared.codecs.is_empty() {
            order.log = TaskLog::Recent(rows);
            return self.threads.order(run, ThreadMessage::Task(Box::new(order)));
        }
        let shared = Arc::clone(&self.shared);
        self.threads.order_later(run, async move {
            (order.log, order.unasked) = shared.decode_task(rows, &mut order.given).await;
            ThreadMessage::Task(Box::new(order))
        });
    }

    /// Orders a query at once, or as soon as its payloads are decoded.
    fn order_query(&self, mut order: QueryMessage) {
        let run = order.token.run;
        if self.shared.codecs.is_empty() {
            if let Err(error) = self.shared.codecs.check_plain(&mut order.query) {
                order.log = QueryLog::Unanswerable(unreadable(&error));
            }
            return self.threads.order(run, ThreadMessage::Query(Box::new(order)));
        }
        let shared = Arc::clone(&self.shared);
        self.threads.order_later(run, async move {
            if let Err(error) = shared.codecs.decode_all(&mut order.query).await {
                order.log = QueryLog::Unanswerable(unreadable(&error));
            }
            ThreadMessage::Query(Box::new(order))
        });
    }

    /// Stops taking new work, finishes the work in flight, and disconnects. Work that the engine
    /// dispatched before it saw the withdrawn credit is still done.
    async fn end(self, mut session: Option<Box<dyn Session>>) {
        self.shared.stop();
        let deadline = Instant::now() + self.grace;
        // After the deadline the engine gives the unfinished work to other workers.
        drop(timeout_at(deadline, self.finish(&mut session)).await);
        let acks = timeout_at(deadline, self.threads.close()).await.unwrap_or_default();
        let heard = acks.into_iter().map(|acks| Acknowledged::all(&self.shared, acks));
        drop(timeout_at(deadline, join_all(heard)).await);
    }

    async fn finish(&self, session: &mut Option<Box<dyn Session>>) -> Result<(), WorkerError> {
        let mut backoff = None;
        loop {
            let Some(stream) = session else {
                if self.shared.idle() {
                    return Ok(());
                }
                *session = Some(self.connect(&mut backoff, true).await?);
                continue;
            };
            let sender = stream.sender();
            tokio::select! {
                biased;
                given = stream.next() => match given {
                    Some(given) => {
                        backoff = None;
                        self.take(&sender, given);
                    }
                    None => {
                        self.shared.disconnected();
                        *session = None;
                    }
                },
                // Checked last: work that was in flight to the worker has arrived by then.
                () = self.shared.idle_again() => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use abide_core::limits::Limits;

    use super::*;

    #[test]
    fn a_worker_tries_often_to_come_back_while_its_attempts_are_kept() {
        assert!(10 * LONGEST_WAIT <= Limits::default().session_grace);
    }
}
