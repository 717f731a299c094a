//! Heartbeats of an attempt: sent at once if none is in flight, and then at most every half of the
//! heartbeat timeout; a newer heartbeat replaces one that waits to be sent.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use abide_core::{attempt::ActivityToken, operation::CallError, payload::Payloads, report::Report};

use super::{attempts::Attempt, notice, shared::WorkerCore};
use crate::{activity::AttemptLink, backoff::Backoff, lock::lock};

/// The interval between heartbeats of an activity without a heartbeat timeout.
const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Heartbeats(Arc<HeartbeatInner>);

struct HeartbeatInner {
    shared: Arc<WorkerCore>,
    attempt: Arc<Attempt>,
    interval: Duration,
    state: Mutex<HeartbeatState>,
    /// Held while a heartbeat is in flight, so that heartbeats arrive in order.
    way: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct HeartbeatState {
    waiting: Option<Payloads>,
    /// A task is sending heartbeats.
    served: bool,
}

impl Heartbeats {
    pub(super) fn new(
        shared: Arc<WorkerCore>,
        attempt: Arc<Attempt>,
        timeout: Option<Duration>,
    ) -> Self {
        let interval = timeout.map_or(INTERVAL, |timeout| timeout / 2);
        let (state, way) = Default::default();
        Self(Arc::new(HeartbeatInner { shared, attempt, interval, state, way }))
    }

    /// Sends the waiting heartbeat after the code has ended: the next attempt resumes from its
    /// details.
    pub(super) async fn flush(&self) {
        let mut backoff = Backoff::new(INTERVAL);
        loop {
            self.0.send_waiting().await;
            if self.0.lock().waiting.is_none() || self.0.attempt.lost() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.step()) => {}
                () = self.0.attempt.losing() => return,
            }
        }
    }
}

impl AttemptLink for Heartbeats {
    fn heartbeat(&self, details: Payloads) {
        let mut state = self.0.lock();
        state.waiting = Some(details);
        if !std::mem::replace(&mut state.served, true) {
            drop(state);
            // A separate task, so that heartbeats of code that never yields are sent too.
            self.0.shared.runtime.spawn(Arc::clone(&self.0).serve());
        }
    }

    fn token(&self) -> Option<ActivityToken> {
        Some(self.0.attempt.token.clone())
    }
}

impl HeartbeatInner {
    async fn serve(self: Arc<Self>) {
        while self.wanted() {
            self.send_waiting().await;
            tokio::time::sleep(self.interval).await;
        }
    }

    /// Whether a heartbeat waits to be sent. If not, the next heartbeat starts a new task.
    fn wanted(&self) -> bool {
        let mut state = self.lock();
        state.served = state.waiting.is_some() && !self.attempt.silent();
        state.served
    }

    async fn send_waiting(&self) {
        let _way = self.way.lock().await;
        let Some(details) = self.lock().waiting.take() else { return };
        // Without a stream the heartbeat waits for the next one.
        let sender = self.shared.stream.borrow().clone();
        let unheard = match sender {
            Some(sender) => {
                let report = Report::Heartbeat(self.attempt.token.clone(), details.clone());
                let result = self.shared.send(sender, report).await;
                self.attempt.heard(&result);
                if let Err(CallError::Invalid(problem)) = &result {
                    // The engine does not count it as a heartbeat, so the attempt may time out.
                    let workflow = &self.attempt.token.workflow;
                    notice::warn(workflow, format_args!("a heartbeat was not accepted: {problem}"));
                }
                result.is_err_and(|error| error.passing())
            }
            None => true,
        };
        if unheard {
            self.lock().waiting.get_or_insert(details);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HeartbeatState> {
        lock(&self.state)
    }
}
