//! In-process transport: passes calls to the engine without encoding them.

use std::{
    future::ready,
    sync::{Arc, Weak},
};

use abide_core::{
    dispatch::{QueueKey, Worker},
    operation::{AnyAnswer, AnyOperation, CallError, Caller},
    report::{Report, ReportAnswer},
};
use abide_engine::{Credits, Engine};
use abide_sdk::{
    future::BoxFuture,
    transport::{AnswerFuture, Given, Session, SessionSender, Transport},
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

    /// Asks the engine, if it is still there.
    fn with_engine<T: Send + 'static, F>(
        &self,
        question: impl FnOnce(Arc<Engine>) -> F,
    ) -> AnswerFuture<'static, T>
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
    fn ask(&self, operation: AnyOperation) -> AnswerFuture<'_, AnyAnswer> {
        self.with_engine(|engine| async move { engine.ask(&Caller::TRUSTED, operation).await })
    }

    fn connect(
        &self,
        worker: Worker,
        takes: Vec<(QueueKey, usize)>,
    ) -> AnswerFuture<'_, Box<dyn Session>> {
        let session = self.engine().and_then(|engine| {
            for (queue, _) in &takes {
                engine.check_namespace(&queue.namespace)?;
                engine.limits().check_name("queue", &queue.queue)?;
            }
            let session = engine.connect(worker, None);
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
        Box::pin(self.session.next())
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

    fn report(&self, report: Report) -> AnswerFuture<'static, ReportAnswer> {
        self.engine.with_engine(|engine| async move { engine.report(report).await })
    }
}
