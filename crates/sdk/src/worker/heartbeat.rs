//! Heartbeats of an attempt: sent at once if none is under way, and then at most every half of the
//! heartbeat timeout; what comes in between replaces what waits to be sent.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use abide_core::{call::Call, payload::Payloads};

use super::{attempts::Attempt, shared::Shared};
use crate::activity::AttemptLink;

/// Between two heartbeats of an activity that has no heartbeat timeout.
const INTERVAL: Duration = Duration::from_secs(1);

/// The heartbeats of one attempt.
pub(super) struct Heartbeats(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    attempt: Arc<Attempt>,
    interval: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Option<Payloads>,
    sending: bool,
}

impl Heartbeats {
    pub(super) fn new(
        shared: Arc<Shared>,
        attempt: Arc<Attempt>,
        timeout: Option<Duration>,
    ) -> Self {
        let interval = timeout.map_or(INTERVAL, |timeout| timeout / 2);
        Self(Arc::new(Inner { shared, attempt, interval, state: Mutex::default() }))
    }
}

impl AttemptLink for Heartbeats {
    fn heartbeat(&self, details: Payloads) {
        let mut state = self.0.lock();
        state.waiting = Some(details);
        if !std::mem::replace(&mut state.sending, true) {
            drop(state);
            // A task of its own, so that code which does not yield is heard as well.
            self.0.shared.runtime.spawn(Arc::clone(&self.0).send());
        }
    }
}

impl Inner {
    async fn send(self: Arc<Self>) {
        while let Some(details) = self.next() {
            // Without a stream there is nobody to tell; the attempt is presented on the next one.
            let sender = self.shared.stream.borrow().clone();
            if let Some(sender) = sender {
                let call = Call::Heartbeat(self.attempt.token.clone(), details);
                self.attempt.heard(&sender.call(call).await);
            }
            tokio::time::sleep(self.interval).await;
        }
    }

    fn next(&self) -> Option<Payloads> {
        let mut state = self.lock();
        let waiting = state.waiting.take().filter(|_| !self.attempt.silent());
        state.sending = waiting.is_some();
        waiting
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held, so what it guards is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
