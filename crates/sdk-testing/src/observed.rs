//! A transport that reports to the clock: calls of the test that wait, and work that workers hold.

use std::{
    future::{Future, pending, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use abide_core::{
    dispatch::{QueueKey, Worker},
    operation::{AnyAnswer, AnyOperation, CallError, OperationName},
    report::{Report, ReportAnswer},
    run::Resolution,
};
use abide_sdk::{
    future::BoxFuture,
    transport::{AnswerFuture, Given, Session, SessionSender, Transport},
};
use tokio::sync::watch;

use crate::{
    faults::Faults,
    held::{Token, WorkLedger},
    stuck,
    time::Time,
    worker::Lifeline,
};

pub(crate) struct Observed {
    inner: Arc<dyn Transport>,
    time: Arc<Time>,
    held: WorkLedger,
    /// Whether a worker is connected and has announced its credit.
    working: watch::Sender<bool>,
    /// For a worker: its injected faults.
    faults: Option<(Faults, Lifeline)>,
}

impl Observed {
    pub(crate) fn new(inner: Arc<dyn Transport>, time: &Arc<Time>, held: &WorkLedger) -> Self {
        let working = watch::Sender::new(false);
        Self { inner, time: Arc::clone(time), held: held.clone(), working, faults: None }
    }

    /// For a worker that can be lost.
    pub(crate) fn with_faults(mut self, faults: &Faults, lifeline: &Lifeline) -> Self {
        self.faults = Some((faults.clone(), lifeline.clone()));
        self
    }

    /// Changes when the worker that is about to start on this transport can take work.
    pub(crate) fn await_work(&self) -> watch::Receiver<bool> {
        self.working.send_replace(false);
        self.working.subscribe()
    }

    fn waiting<'a, T>(&self, answer: AnswerFuture<'a, T>) -> AnswerFuture<'a, T>
    where
        T: Send + 'a,
    {
        let waiting = ObservedCall { time: Arc::clone(&self.time), answer, waits: false };
        let (inner, mut stuck) = (Arc::clone(&self.inner), self.time.stuck());
        Box::pin(async move {
            tokio::select! {
                biased;
                answer = waiting => answer,
                Ok(()) = stuck.changed() => {
                    let reason = *stuck.borrow();
                    Err(stuck::error(&*inner, reason).await)
                }
            }
        })
    }
}

impl Transport for Observed {
    fn ask(&self, operation: AnyOperation) -> AnswerFuture<'_, AnyAnswer> {
        // To look at a run, a list or a history is no reason for anything to happen.
        let looks = operation.name() == OperationName::Describe;
        if !looks && matches!(operation, AnyOperation::Run(_)) {
            self.time.progress();
        }
        self.waiting(self.inner.ask(operation))
    }

    fn connect(
        &self,
        worker: Worker,
        takes: Vec<(QueueKey, usize)>,
    ) -> AnswerFuture<'_, Box<dyn Session>> {
        Box::pin(async move {
            let session = self.inner.connect(worker, takes).await?;
            let stream = self.held.open();
            let (time, held) = (Arc::clone(&self.time), self.held.clone());
            let end = ObservedEnd { held: held.clone(), stream };
            let inner = session.sender();
            let faults = self.faults.clone();
            let sender = ObservedSender { inner, time: Arc::clone(&time), held, stream, faults };
            let sender = Arc::new(sender);
            let working = self.working.clone();
            Ok(Box::new(ObservedSession { session, sender, time, working, end })
                as Box<dyn Session>)
        })
    }
}

/// A call of the test. While it has no reply the test waits; while it is polled, it holds time.
struct ObservedCall<'a, T> {
    time: Arc<Time>,
    answer: AnswerFuture<'a, T>,
    waits: bool,
}

impl<T> Future for ObservedCall<'_, T> {
    type Output = Result<T, CallError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _work = self.time.begin();
        let polled = self.answer.as_mut().poll(context);
        if polled.is_pending() != self.waits {
            self.waits = polled.is_pending();
            if self.waits { self.time.begin_wait() } else { self.time.end_wait() }
        }
        polled
    }
}

impl<T> Drop for ObservedCall<'_, T> {
    fn drop(&mut self) {
        if self.waits {
            let _work = self.time.begin();
            self.time.end_wait();
        }
    }
}

struct ObservedSession {
    session: Box<dyn Session>,
    sender: Arc<ObservedSender>,
    time: Arc<Time>,
    working: watch::Sender<bool>,
    /// Declared after the session, so that the engine learns of the end before time may pass.
    end: ObservedEnd,
}

impl Session for ObservedSession {
    fn sender(&self) -> Arc<dyn SessionSender> {
        Arc::clone(&self.sender) as Arc<dyn SessionSender>
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Given>> {
        Box::pin(async move {
            self.working.send_replace(true);
            let given = self.session.next().await?;
            if let Given::Work(dispatch) = &given {
                self.end.held.given(self.end.stream, dispatch, &self.time);
            }
            Some(given)
        })
    }
}

/// Ends the work of a stream.
struct ObservedEnd {
    held: WorkLedger,
    stream: u64,
}

impl Drop for ObservedEnd {
    fn drop(&mut self) {
        self.held.close(self.stream);
    }
}

struct ObservedSender {
    inner: Arc<dyn SessionSender>,
    time: Arc<Time>,
    held: WorkLedger,
    stream: u64,
    faults: Option<(Faults, Lifeline)>,
}

impl SessionSender for ObservedSender {
    fn credit(&self, queue: QueueKey, credits: usize) {
        // Counted first, because its work may arrive before the call returns.
        let _work = self.time.begin();
        self.held.credit(self.stream, queue.kind, credits);
        self.inner.credit(queue, credits);
    }

    fn withdraw(&self) {
        self.inner.withdraw();
        self.held.withdraw(self.stream);
    }

    fn report(&self, report: Report) -> AnswerFuture<'static, ReportAnswer> {
        if let (Report::CompleteTask(..), Some((faults, lifeline))) = (&report, &self.faults)
            && faults.loses_task()
        {
            lifeline.cut();
            return Box::pin(pending());
        }
        if succeeds(&report) {
            self.time.progress();
        }
        let held = self.held.clone();
        let (answered, shown) = (Token::answered_by(&report), Token::shown_by(&report));
        let mut answer = self.inner.report(report);
        Box::pin(async move {
            // The first poll hands the report to the engine, which holds time from there on.
            let first = poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await;
            if let Some(token) = answered {
                held.ended(&token);
            }
            let result = match first {
                Poll::Ready(result) => result,
                Poll::Pending => answer.await,
            };
            if let (Some(token), Err(error)) = (shown, &result)
                && error.attempt_gone()
            {
                held.ended(&token);
            }
            result
        })
    }
}

/// The worker has done what it was given.
const fn succeeds(report: &Report) -> bool {
    matches!(
        report,
        Report::CompleteTask(..)
            | Report::ResolveActivity(_, Resolution::Completed(_) | Resolution::Cancelled(_))
    )
}
