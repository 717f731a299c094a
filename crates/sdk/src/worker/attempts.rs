//! The attempts of activities that a worker has: each is a task of the runtime, from the moment it is
//! given until the engine has its result, over as many streams as that takes.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use abide_core::{
    attempt::ActivityToken,
    ids::{EventNumber, RunId, ShardId},
    operation::CallError,
    report::{Report, ReportAnswer},
};
use tokio::{sync::watch, task::AbortHandle};

use super::shared::Shared;
use crate::activity::CancelToken;

type Name = (RunId, EventNumber, u32);

/// The attempts that a worker has.
#[derive(Default)]
pub(super) struct Attempts {
    held: Mutex<BTreeMap<Name, Held>>,
}

struct Held {
    attempt: Arc<Attempt>,
    task: Option<AbortHandle>,
}

/// One attempt.
pub(super) struct Attempt {
    pub(super) token: ActivityToken,
    pub(super) cancel: CancelToken,
    lost: watch::Sender<bool>,
    ended: AtomicBool,
}

impl Attempt {
    pub(super) fn new(token: ActivityToken) -> Self {
        let (lost, ended) = (watch::Sender::new(false), AtomicBool::new(false));
        Self { token, cancel: CancelToken::new(), lost, ended }
    }

    /// The engine has given the attempt up: its code is asked to stop and its result is not wanted.
    pub(super) fn lose(&self) {
        self.lost.send_replace(true);
        self.cancel.cancel();
    }

    /// The engine has given the attempt up.
    pub(super) fn lost(&self) -> bool {
        *self.lost.borrow()
    }

    /// Ready when the engine has given the attempt up.
    pub(super) async fn losing(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        drop(self.lost.subscribe().wait_for(|lost| *lost).await);
    }

    /// The code has ended: nothing but its result is to be sent.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// The code has ended, or nobody wants to hear of it.
    pub(super) fn silent(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.lost()
    }

    /// Takes what the engine said to a sign of life.
    pub(super) fn heard(&self, result: &Result<ReportAnswer, CallError>) {
        match result {
            Ok(ReportAnswer::Alive { cancel_requested: true }) => self.cancel.cancel(),
            Err(error) if error.attempt_gone() => self.lose(),
            Ok(_) | Err(_) => {}
        }
    }

    fn name(&self) -> Name {
        (self.token.run, self.token.scheduled, self.token.start)
    }
}

impl Attempts {
    /// Keeps an attempt; `false` if it is here already.
    pub(super) fn add(&self, attempt: &Arc<Attempt>) -> bool {
        match self.lock().entry(attempt.name()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(Held { attempt: Arc::clone(attempt), task: None });
                true
            }
        }
    }

    /// The attempt runs as this task of the runtime.
    pub(super) fn runs_as(&self, attempt: &Attempt, task: AbortHandle) {
        if let Some(held) = self.lock().get_mut(&attempt.name()) {
            held.task = Some(task);
        }
    }

    /// The attempt has ended.
    pub(super) fn remove(&self, attempt: &Attempt) {
        self.lock().remove(&attempt.name());
    }

    /// There are none.
    pub(super) fn none(&self) -> bool {
        self.lock().is_empty()
    }

    /// The attempts of runs of this shard, or of all.
    pub(super) fn of_shard(&self, shard: Option<ShardId>) -> Vec<Arc<Attempt>> {
        let of_shard = |held: &&Held| {
            shard.is_none_or(|shard| held.attempt.token.workflow.slot().shard() == shard)
        };
        self.lock().values().filter(of_shard).map(|held| Arc::clone(&held.attempt)).collect()
    }

    /// Ends all of them where they stand.
    pub(super) fn abort(&self) {
        let held = std::mem::take(&mut *self.lock());
        for task in held.into_values().filter_map(|held| held.task) {
            task.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Held>> {
        // Nothing panics while the lock is held, so what it guards is whole.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Tells the engine that the worker has the attempt. If there is no stream, the next one will be
    /// used for it.
    pub(super) async fn present_one(&self, attempt: &Attempt) {
        let Some(sender) = self.stream.borrow().clone() else { return };
        let report = Report::PresentAttempt(attempt.token.clone(), self.worker.session.clone());
        attempt.heard(&sender.report(report).await);
    }
}
