//! Which caller waits for which answer on a stream. When the stream ends, all callers get an error.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use abide_core::operation::CallError;
use tokio::sync::oneshot;

use crate::lock::lock;

/// The waiting callers of one stream, by call number.
pub(super) struct Answers<T>(Arc<Mutex<PendingAnswer<T>>>);

struct PendingAnswer<T> {
    last: u64,
    callers: HashMap<u64, oneshot::Sender<Result<T, CallError>>>,
    /// Why the stream ended; none while it is open.
    ended: Option<CallError>,
}

/// A caller's place to receive one answer.
pub(super) struct Claim<T> {
    answers: Answers<T>,
    pub(super) number: u64,
    answer: oneshot::Receiver<Result<T, CallError>>,
}

impl<T> Clone for Answers<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Answers<T> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(PendingAnswer { last: 0, callers: HashMap::new(), ended: None })))
    }

    pub(super) fn open(&self) -> bool {
        self.lock().ended.is_none()
    }

    /// Registers a new call and returns the claim to its answer.
    pub(super) fn claim(&self) -> Result<Claim<T>, CallError> {
        let (sender, answer) = oneshot::channel();
        let mut waiting = self.lock();
        if let Some(ended) = &waiting.ended {
            return Err(ended.clone());
        }
        waiting.last += 1;
        let number = waiting.last;
        waiting.callers.insert(number, sender);
        drop(waiting);
        Ok(Claim { answers: self.clone(), number, answer })
    }

    /// Delivers answers to their callers.
    pub(super) fn settle(&self, answers: impl IntoIterator<Item = (u64, Result<T, CallError>)>) {
        let mut waiting = self.lock();
        for (number, answer) in answers {
            if let Some(caller) = waiting.callers.remove(&number) {
                // The send fails only if the caller has stopped waiting.
                drop(caller.send(answer));
            }
        }
    }

    /// Fails all waiting callers because the stream has ended. The reason says nothing about the
    /// single calls: their answers are lost.
    pub(super) fn end(&self, why: impl Into<String>) {
        let why = CallError::Unavailable(why.into());
        let callers = {
            let mut waiting = self.lock();
            waiting.ended.get_or_insert_with(|| why.clone());
            std::mem::take(&mut waiting.callers)
        };
        for caller in callers.into_values() {
            // The send fails only if the caller has stopped waiting.
            drop(caller.send(Err(why.clone())));
        }
    }

    fn lock(&self) -> MutexGuard<'_, PendingAnswer<T>> {
        lock(&self.0)
    }
}

impl<T> Claim<T> {
    pub(super) async fn answer(&mut self) -> Result<T, CallError> {
        let lost = |_| Err(CallError::Unavailable("the connection was lost".into()));
        (&mut self.answer).await.unwrap_or_else(lost)
    }

    /// Gives up the claim; returns whether it was still open.
    pub(super) fn give_up(&mut self) -> bool {
        self.answers.lock().callers.remove(&self.number).is_some()
    }
}
