//! The life of a worker: it connects, takes what it is given, connects again when the stream ends, and
//! shuts down without leaving anything half done if there is time for it.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use abide_core::{dispatch::Dispatch, operation::CallError};
use futures_util::future::join_all;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};

use super::{
    WorkerError,
    ack::Acknowledged,
    activity,
    order::{Order, QueryLog, QueryOrder, TaskLog, TaskOrder},
    shared::{Shared, TaskSlot},
    threads::Threads,
};
use crate::{
    backoff::Backoff,
    transport::{Given, Session, SessionSender},
};

/// Between two tries to connect: much less than the engine keeps the attempts of a worker that is
/// gone.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// Between two looks at the workflow threads.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// How a worker lives.
pub(super) struct Life {
    pub(super) shared: Arc<Shared>,
    pub(super) threads: Threads,
    /// How long work may take to end after the worker was told to.
    pub(super) grace: Duration,
    /// How long a workflow task may take before somebody is told.
    pub(super) task_deadline: Duration,
    /// Ends the attempts of a worker that is dropped.
    pub(super) _end: End,
}

/// However a worker's life ends, its attempts end with it.
pub(super) struct End(pub(super) Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.disconnected();
        self.0.attempts.abort();
    }
}

/// Why a stream is left.
enum Left<T> {
    /// It ended.
    Ended,
    /// The worker was told to end, by this.
    Told(T),
}

impl Life {
    /// Works until `shutdown` is ready, then ends what is under way.
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
                Left::Ended => self.shared.disconnected(),
                Left::Told(told) => {
                    self.end(Some(session)).await;
                    return Ok(told);
                }
            }
        }
    }

    /// Connects; only what no repetition can change is an error. It waits if the last stream, whose
    /// `backoff` this is, ended without having brought anything: the next may end as soon.
    async fn connect(
        &self,
        backoff: &mut Option<Backoff>,
        closing: bool,
    ) -> Result<Box<dyn Session>, WorkerError> {
        if let Some(backoff) = backoff {
            sleep(backoff.step()).await;
        }
        let backoff = backoff.get_or_insert(Backoff::new(LONGEST_WAIT));
        loop {
            let Shared { transport, worker, .. } = &*self.shared;
            match transport.connect(worker.clone(), self.shared.takes()).await {
                Ok(session) => {
                    self.shared.connected(&session.sender(), closing);
                    self.shared.present(None);
                    return Ok(session);
                }
                Err(error @ CallError::Invalid(_)) => return Err(WorkerError::Refused(error)),
                Err(error @ CallError::NoAnswer(_)) => return Err(WorkerError::EngineGone(error)),
                Err(error) => {
                    let wait = backoff.scattered_step();
                    tracing::warn!(%error, "the worker cannot connect; it tries again in {wait:?}");
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
                let log = TaskLog::Recent(recent.unwrap_or_default());
                let run = token.run;
                let order = TaskOrder { sender, token, given, last_event, log, slot };
                self.threads.order(run, Order::Task(Box::new(order)));
            }
            Dispatch::Query { token, last_event, query } => {
                let slot = TaskSlot::take(&self.shared);
                let log = QueryLog::Unread;
                let run = token.run;
                let order = QueryOrder { sender, token, last_event, query, log, slot };
                self.threads.order(run, Order::Query(Box::new(order)));
            }
            Dispatch::Activity { token, given, eager } => {
                activity::begin(&self.shared, token, *given, eager);
            }
        }
    }

    /// Takes nothing new, waits for what is under way, and leaves. What the engine gave before it saw
    /// the end of the credit is still done.
    async fn end(self, mut session: Option<Box<dyn Session>>) {
        self.shared.stop();
        let deadline = Instant::now() + self.grace;
        // When time is up, what is left goes to other workers.
        drop(timeout_at(deadline, self.finish(&mut session)).await);
        let acks = timeout_at(deadline, self.threads.close()).await.unwrap_or_default();
        let heard = acks.into_iter().map(Acknowledged::all);
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
                // Asked last: what was on its way has arrived by then.
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
