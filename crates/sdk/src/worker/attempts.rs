//! The attempts of activities that a worker holds. Each is a task of the runtime, from its dispatch
//! until the engine acknowledges its result, across as many streams as that takes.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{
        Arc, Mutex, MutexGuard,
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

use super::shared::WorkerCore;
use crate::{activity::CancelToken, lock::lock};

type Name = (RunId, EventNumber, u32);

/// The attempts that a worker holds.
#[derive(Default)]
pub(super) struct Attempts {
    held: Mutex<BTreeMap<Name, HeldAttempt>>,
}

struct HeldAttempt {
    attempt: Arc<Attempt>,
    task: Option<AbortHandle>,
}

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

    /// The engine has given up the attempt: its code is asked to stop, and its result is discarded.
    pub(super) fn lose(&self) {
        self.lost.send_replace(true);
        self.cancel.cancel();
    }

    pub(super) fn lost(&self) -> bool {
        *self.lost.borrow()
    }

    /// Resolves when the engine gives up the attempt.
    pub(super) async fn losing(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        drop(self.lost.subscribe().wait_for(|lost| *lost).await);
    }

    /// The code has ended: only its result is sent from now on.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// The code has ended or the attempt is lost: heartbeats are no longer sent.
    pub(super) fn silent(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.lost()
    }

    /// Handles the engine's answer to a heartbeat.
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
    /// Adds an attempt; `false` if the worker holds it already.
    pub(super) fn add(&self, attempt: &Arc<Attempt>) -> bool {
        match self.lock().entry(attempt.name()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(HeldAttempt { attempt: Arc::clone(attempt), task: None });
                true
            }
        }
    }

    /// Records the runtime task of the attempt.
    pub(super) fn runs_as(&self, attempt: &Attempt, task: AbortHandle) {
        if let Some(held) = self.lock().get_mut(&attempt.name()) {
            held.task = Some(task);
        }
    }

    pub(super) fn remove(&self, attempt: &Attempt) {
        self.lock().remove(&attempt.name());
    }

    pub(super) fn none(&self) -> bool {
        self.lock().is_empty()
    }

    /// The attempts of runs of this shard, or of all shards.
    pub(super) fn of_shard(&self, shard: Option<ShardId>) -> Vec<Arc<Attempt>> {
        let of_shard = |held: &&HeldAttempt| {
            shard.is_none_or(|shard| held.attempt.token.workflow.slot().shard() == shard)
        };
        self.lock().values().filter(of_shard).map(|held| Arc::clone(&held.attempt)).collect()
    }

    /// Aborts the tasks of all attempts.
    pub(super) fn abort(&self) {
        let held = std::mem::take(&mut *self.lock());
        for task in held.into_values().filter_map(|held| held.task) {
            task.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, HeldAttempt>> {
        lock(&self.held)
    }
}

impl WorkerCore {
    /// Tells the engine that the worker holds the attempt. Without a stream it does nothing: all
    /// attempts are presented when the next stream opens.
    pub(super) async fn present_one(&self, attempt: &Attempt) {
        let Some(sender) = self.stream.borrow().clone() else { return };
        let report = Report::PresentAttempt(attempt.token.clone(), self.worker.session.clone());
        attempt.heard(&self.send(sender, report).await);
    }
}
