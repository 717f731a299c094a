//! A workflow thread: it owns the machines of its runs, which never leave it, and runs their tasks
//! and queries one after the other. Log reads happen outside the thread and come back as orders.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use abide_core::{
    event::TaskFailureCause,
    failure::Failure,
    ids::{RunId, WorkflowKey},
    report::{Report, TaskToken},
};
use futures_util::{Stream, stream::FuturesUnordered};

use super::{
    ack::{Ack, Acknowledged, CompletionOutcome},
    cache::Cache,
    local::Launcher,
    metrics::WorkerMetrics,
    notice,
    pause::Paused,
    shared::WorkerCore,
    thread_message::ThreadMessage,
    watchdog::Watched,
};
use crate::{panic, transport::SessionSender};

/// How often acknowledgements are checked while there is no new order: an acknowledgement alone
/// does not wake the thread.
const ACKS_WAIT: Duration = Duration::from_millis(100);

/// Reports that the engine has not acknowledged yet.
pub(super) type Acks = FuturesUnordered<Ack>;

pub(super) struct WorkflowThread {
    pub(super) shared: Arc<WorkerCore>,
    pub(super) orders: Receiver<ThreadMessage>,
    /// Sends the results of log reads back to this thread.
    pub(super) own: Sender<ThreadMessage>,
    pub(super) cache: Cache,
    pub(super) watched: Arc<Watched>,
    pub(super) acks: Acks,
    pub(super) launcher: Launcher,
    /// Tasks that wait for local activities.
    pub(super) paused: HashMap<RunId, Paused>,
    pub(super) cached: CachedRuns,
}

/// The part of the number of runs in memory that one thread has.
pub(super) struct CachedRuns {
    pub(super) metrics: WorkerMetrics,
    pub(super) count: u64,
}

impl CachedRuns {
    fn set(&mut self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let runs = &self.metrics.cache().runs;
        if let Some(more) = count.checked_sub(self.count) {
            runs.fetch_add(more, Ordering::Relaxed);
        } else {
            runs.fetch_sub(self.count - count, Ordering::Relaxed);
        }
        self.count = count;
    }
}

impl Drop for CachedRuns {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl WorkflowThread {
    /// Runs until it receives the order to close; returns the unacknowledged reports.
    pub(super) fn run(mut self) -> Acks {
        // Futures of the transport may need timers. The executor detects workflow code that uses a
        // timer by mistake, with a better message than a missing runtime gives.
        let runtime = self.shared.runtime.clone();
        let _entered = runtime.enter();
        while let Some(order) = self.next_order() {
            self.look_at_acks();
            match order {
                ThreadMessage::Task(task) => {
                    let (sender, token) = (Arc::clone(&task.sender), task.token.clone());
                    if let Err(failure) = self.guarded(&token.workflow, |it| it.task(*task)) {
                        self.send(sender, worker_failed(token, failure));
                    }
                }
                ThreadMessage::Query(query) => {
                    let (sender, token) = (Arc::clone(&query.sender), query.token.clone());
                    if let Err(failure) = self.guarded(&token.workflow, |it| it.query(*query)) {
                        self.send(sender, Report::AnswerQuery(token, Err(failure)));
                    }
                }
                ThreadMessage::LocalEnded(ended) => {
                    let workflow = ended.token.workflow.clone();
                    let waits = self.paused.get(&ended.token.run).map(Paused::answer_to);
                    let told = self.guarded(&workflow, |it| it.local_ended(*ended));
                    if let (Err(failure), Some((sender, token))) = (told, waits) {
                        self.send(sender, worker_failed(token, failure));
                    }
                }
                ThreadMessage::LocalPause(run, start) => self.pause_over(run, start),
                ThreadMessage::Close => break,
            }
            self.look_at_acks();
            self.cached.set(self.cache.len());
        }
        self.acks
    }

    fn next_order(&mut self) -> Option<ThreadMessage> {
        while !self.acks.is_empty() {
            match self.orders.recv_timeout(ACKS_WAIT) {
                Ok(order) => return Some(order),
                Err(RecvTimeoutError::Timeout) => self.look_at_acks(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        self.orders.recv().ok()
    }

    /// Catches panics from outside workflow code, such as from dropping a user's value, so that the
    /// thread survives. If the work was not answered before, it is answered with the failure.
    fn guarded(
        &mut self,
        workflow: &WorkflowKey,
        work: impl FnOnce(&mut Self),
    ) -> Result<(), Failure> {
        self.watched.begin(workflow);
        let ended = catch_unwind(AssertUnwindSafe(|| work(self)));
        self.watched.end();
        ended.map_err(|panic| {
            let text = panic::message(&*panic);
            let message = format!("a value of the workflow panicked when it was dropped: {text}");
            notice::warn(workflow, format_args!("{message}"));
            Failure { message, error_type: "Panic".into(), ..Failure::default() }
        })
    }

    /// Sends a report. It is in flight when this returns, because its future is polled once.
    pub(super) fn send(&mut self, sender: Arc<dyn SessionSender>, report: Report) {
        self.expect_ack(Ack::new(&self.shared, sender, report));
    }

    /// Adds a report to those whose acknowledgement is awaited.
    pub(super) fn expect_ack(&mut self, ack: Ack) {
        self.acks.push(ack);
        self.look_at_acks();
    }

    fn look_at_acks(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(acknowledged)) = Pin::new(&mut self.acks).poll_next(&mut context)
        {
            self.acknowledged(acknowledged);
        }
    }

    fn acknowledged(&mut self, Acknowledged { sender, answered, result }: Acknowledged) {
        let Some(token) = answered else { return };
        self.shared.eager.answered(token.run);
        self.shared.ended.notify_one();
        match CompletionOutcome::of(&token, result) {
            CompletionOutcome::Taken => {}
            CompletionOutcome::NotTaken => self.cache.forget_turn(token.run, token.start),
            CompletionOutcome::Unfit(failed) => {
                self.cache.forget_turn(token.run, token.start);
                self.send(sender, *failed);
            }
        }
    }

    /// Reads something outside the thread and sends it to the thread as an order.
    pub(super) fn read_beside(&self, order: impl Future<Output = ThreadMessage> + Send + 'static) {
        let own = self.own.clone();
        self.shared.runtime.spawn(async move {
            // The send fails only if the thread has ended.
            drop(own.send(order.await));
        });
    }
}

fn worker_failed(token: TaskToken, failure: Failure) -> Report {
    Report::FailTask { token, cause: TaskFailureCause::WorkerFailure, failure, blocked: None }
}
