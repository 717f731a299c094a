//! A transport that loses chosen messages.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use abide::{
    Client,
    future::BoxFuture,
    transport::{AnswerFuture, Given, Session, SessionSender, Transport},
};
use abide_core::{
    dispatch::{QueueKey, Worker as Named},
    operation::{AnyAnswer, AnyOperation, CallError, OperationName},
    report::{Report, ReportAnswer},
};
use abide_embedded::Embedded;
use tokio::sync::{Barrier, Notify};

/// Executes every call of a client and loses the first reply to it. Each test configures what
/// happens to workers.
pub(crate) struct Unsteady {
    inner: Arc<dyn Transport>,
    asked: Mutex<BTreeSet<String>>,
    pub(crate) lost: AtomicU32,
    /// Runs before a caller without a reply retries.
    pub(crate) meanwhile: Mutex<Option<BoxFuture<'static, ()>>>,
    /// Ends the stream of a worker.
    pub(crate) cut: Arc<Notify>,
    pub(crate) streams: AtomicU32,
    /// Notified for each stream that is opened.
    pub(crate) connected: Notify,
    /// Streams end as soon as they are opened.
    barren: bool,
    /// Errors for the next reads of a history.
    pub(crate) unread: Mutex<VecDeque<CallError>>,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    heartbeats_lost: AtomicU32,
    presented: Mutex<Option<Arc<Barrier>>>,
}

impl Unsteady {
    pub(crate) fn new(engine: &Embedded) -> Arc<Self> {
        Arc::new(Self::over(engine, false))
    }

    /// A transport whose streams end as soon as they are opened.
    pub(crate) fn barren(engine: &Embedded) -> Arc<Self> {
        Arc::new(Self::over(engine, true))
    }

    fn over(engine: &Embedded, barren: bool) -> Self {
        Self {
            inner: Arc::clone(engine.client().transport()),
            asked: Mutex::default(),
            lost: AtomicU32::new(0),
            meanwhile: Mutex::default(),
            cut: Arc::default(),
            streams: AtomicU32::new(0),
            connected: Notify::new(),
            barren,
            unread: Mutex::default(),
            faults: Arc::default(),
        }
    }

    pub(crate) fn client(self: &Arc<Self>) -> Client {
        Client::new(Arc::clone(self) as Arc<dyn Transport>)
    }

    /// Loses the next `count` heartbeats.
    pub(crate) fn lose_heartbeats(&self, count: u32) {
        self.faults.heartbeats_lost.store(count, Ordering::SeqCst);
    }

    /// Holds the replies to presented attempts until this many have arrived, and the test waits as
    /// well.
    pub(crate) fn gather_presented(&self, attempts: usize) -> Arc<Barrier> {
        let all = Arc::new(Barrier::new(attempts + 1));
        *self.faults.presented.lock().unwrap() = Some(Arc::clone(&all));
        all
    }
}

impl Transport for Unsteady {
    fn ask(&self, operation: AnyOperation) -> AnswerFuture<'_, AnyAnswer> {
        let unread = match operation.name() {
            OperationName::History => self.unread.lock().unwrap().pop_front(),
            _ => None,
        };
        let first =
            loses(&operation) && self.asked.lock().unwrap().insert(format!("{operation:?}"));
        Box::pin(async move {
            if let Some(error) = unread {
                return Err(error);
            }
            let result = self.inner.ask(operation).await;
            if first {
                self.lost.fetch_add(1, Ordering::SeqCst);
                let meanwhile = self.meanwhile.lock().unwrap().take();
                if let Some(meanwhile) = meanwhile {
                    meanwhile.await;
                }
                return Err(CallError::Unavailable("the answer was lost".into()));
            }
            result
        })
    }

    fn connect(
        &self,
        worker: Named,
        takes: Vec<(QueueKey, usize)>,
    ) -> AnswerFuture<'_, Box<dyn Session>> {
        Box::pin(async move {
            self.streams.fetch_add(1, Ordering::SeqCst);
            self.connected.notify_one();
            let inner = self.inner.connect(worker, takes).await?;
            let sender = Sender { inner: inner.sender(), faults: Arc::clone(&self.faults) };
            let (sender, cut) = (Arc::new(sender), Arc::clone(&self.cut));
            let barren = self.barren;
            Ok(Box::new(Stream { inner, sender, cut, barren }) as Box<dyn Session>)
        })
    }
}

/// Whether the first answer to it is lost. Those who only look are left alone.
fn loses(operation: &AnyOperation) -> bool {
    matches!(operation, AnyOperation::Run(_)) && operation.name() != OperationName::Describe
}

struct Stream {
    inner: Box<dyn Session>,
    sender: Arc<Sender>,
    cut: Arc<Notify>,
    barren: bool,
}

impl Session for Stream {
    fn sender(&self) -> Arc<dyn SessionSender> {
        Arc::clone(&self.sender) as Arc<dyn SessionSender>
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Given>> {
        Box::pin(async move {
            if self.barren {
                return None;
            }
            tokio::select! {
                () = self.cut.notified() => None,
                given = self.inner.next() => given,
            }
        })
    }
}

struct Sender {
    inner: Arc<dyn SessionSender>,
    faults: Arc<Faults>,
}

impl SessionSender for Sender {
    fn credit(&self, queue: QueueKey, credits: usize) {
        self.inner.credit(queue, credits);
    }

    fn withdraw(&self) {
        self.inner.withdraw();
    }

    fn report(&self, report: Report) -> AnswerFuture<'static, ReportAnswer> {
        let left = |left: u32| left.checked_sub(1);
        match &report {
            Report::Heartbeat(..)
                if self
                    .faults
                    .heartbeats_lost
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, left)
                    .is_ok() =>
            {
                let lost = CallError::Unavailable("the heartbeat was lost".into());
                Box::pin(std::future::ready(Err(lost)))
            }
            Report::PresentAttempt(..) => {
                let presented = self.faults.presented.lock().unwrap().clone();
                let answer = self.inner.report(report);
                Box::pin(async move {
                    if let Some(presented) = presented {
                        presented.wait().await;
                    }
                    answer.await
                })
            }
            _ => self.inner.report(report),
        }
    }
}
