//! In-process transport: passes calls to the engine without encoding them.

use std::{
    future::ready,
    sync::{Arc, Weak},
};

use abide_core::{
    call::{Call, CallError, CallReply, HistoryPage, HistoryRequest, QueueKey, RunTarget, Worker},
    list::{RunFilter, RunRow, WaitFilter, WaitRow},
    node::NodeListing,
    run::Description,
};
use abide_engine::{Credits, Engine};
use abide_sdk::{
    future::BoxFuture,
    transport::{Answer, Given, Session, SessionSender, Transport},
};

/// Transport to an engine in this process. It does not keep the engine alive.
#[derive(Clone)]
pub(crate) struct InProcess(Weak<Engine>);

impl InProcess {
    pub(crate) fn new(engine: &Arc<Engine>) -> Self {
        Self(Arc::downgrade(engine))
    }

    fn engine(&self) -> Result<Arc<Engine>, CallError> {
        let engine = self.0.upgrade().filter(|engine| !engine.stopping());
        engine.ok_or_else(|| CallError::NoAnswer("the engine was shut down".into()))
    }

    /// Calls the engine, if it still exists.
    fn ask<T: Send + 'static, F>(
        &self,
        question: impl FnOnce(Arc<Engine>) -> F,
    ) -> Answer<'static, T>
    where
        F: Future<Output = Result<T, CallError>> + Send + 'static,
    {
        match self.engine() {
            Ok(engine) => Box::pin(question(engine)),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }
}

impl Transport for InProcess {
    fn call(&self, call: Call) -> Answer<'_, CallReply> {
        self.ask(|engine| async move { engine.call(call).await })
    }

    fn describe(&self, target: RunTarget) -> Answer<'_, Description> {
        self.ask(|engine| async move { engine.describe(target).await })
    }

    fn history(&self, request: HistoryRequest) -> Answer<'_, HistoryPage> {
        self.ask(|engine| async move { engine.history(request).await })
    }

    fn runs(&self, filter: RunFilter, limit: usize) -> Answer<'_, Vec<RunRow>> {
        self.ask(move |engine| async move { engine.runs(filter, limit).await })
    }

    fn count_runs(&self, filter: RunFilter) -> Answer<'_, u64> {
        self.ask(|engine| async move { engine.count_runs(filter).await })
    }

    fn waits(&self, filter: WaitFilter, limit: usize) -> Answer<'_, Vec<WaitRow>> {
        self.ask(move |engine| async move { Ok(engine.waits(filter, limit).await?.0) })
    }

    fn nodes(&self) -> Answer<'_, Vec<NodeListing>> {
        self.ask(|engine| async move { engine.nodes().await })
    }

    fn connect(
        &self,
        worker: Worker,
        takes: Vec<(QueueKey, usize)>,
    ) -> Answer<'_, Box<dyn Session>> {
        let session = self.engine().and_then(|engine| {
            for (queue, _) in &takes {
                engine.check_namespace(&queue.namespace)?;
                engine.limits().check_name("queue", &queue.queue)?;
            }
            let session = engine.connect(worker);
            // If the engine stops after this check, it ends the stream.
            self.engine()?;
            let credits = session.credits();
            let sender = Arc::new(Sender { engine: self.clone(), credits });
            Ok(Box::new(Connected { session, sender }) as Box<dyn Session>)
        });
        Box::pin(ready(session))
    }
}

struct Connected {
    session: abide_engine::Session,
    sender: Arc<Sender>,
}

impl Session for Connected {
    fn sender(&self) -> Arc<dyn SessionSender> {
        Arc::clone(&self.sender) as Arc<dyn SessionSender>
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Given>> {
        Box::pin(async move {
            Some(match self.session.next().await? {
                abide_engine::Given::Work(dispatch) => Given::Work(dispatch),
                abide_engine::Given::PresentAttempts(shard) => Given::PresentAttempts(shard),
            })
        })
    }
}

struct Sender {
    engine: InProcess,
    credits: Credits,
}

impl SessionSender for Sender {
    fn credit(&self, queue: QueueKey, credits: usize) {
        self.credits.give(queue, credits);
    }

    fn withdraw(&self) {
        self.credits.withdraw();
    }

    fn call(&self, call: Call) -> Answer<'static, CallReply> {
        self.engine.ask(|engine| async move { engine.call(call).await })
    }
}
