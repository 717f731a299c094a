//! Attempts that the engine has given up: their code is asked to stop, and aborted if it does not,
//! so that it does not occupy a slot forever.
//!
//! Code that sends no heartbeats learns nothing from the engine. So when an attempt's time is up,
//! the worker asks the engine about it. The engine's clock decides, not the worker's.

use std::{future::pending, time::Duration};

use abide_core::event::ActivitySpec;
use tokio::time::sleep;

use super::{attempts::Attempt, shared::WorkerCore};
use crate::backoff::Backoff;

/// How long code may take to stop after its attempt was given up.
pub(super) const STOP_GRACE: Duration = Duration::from_secs(1);

/// The longest pause between two questions about an attempt whose time is up.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// When the worker asks whether the engine has given up an attempt.
#[derive(Clone, Copy)]
pub(super) struct Overdue {
    /// The longest duration of the attempt, from its start.
    limit: Option<Duration>,
    /// The heartbeat timeout: the longest time between two heartbeats.
    silence: Option<Duration>,
}

impl Overdue {
    pub(super) fn of(spec: &ActivitySpec) -> Self {
        // The activity started no later than this attempt, so its limit bounds the attempt too.
        let limit = spec.start_to_close.into_iter().chain(spec.schedule_to_close).min();
        Self { limit, silence: spec.heartbeat }
    }

    /// Resolves when the engine has given up the attempt and its code has had time to stop.
    pub(super) async fn given_up(self, shared: &WorkerCore, attempt: &Attempt) {
        tokio::select! {
            () = attempt.losing() => {}
            () = ask_after(self.limit, shared, attempt) => {}
            () = ask_every(self.silence, shared, attempt) => {}
        }
        sleep(STOP_GRACE).await;
    }
}

/// Asks when the attempt's time is up, and again until the engine has given it up.
async fn ask_after(limit: Option<Duration>, shared: &WorkerCore, attempt: &Attempt) {
    let Some(limit) = limit else { return pending().await };
    sleep(limit).await;
    let mut backoff = Backoff::new(LONGEST_WAIT);
    while !attempt.lost() {
        shared.present_one(attempt).await;
        sleep(backoff.step()).await;
    }
}

/// Asks once per heartbeat timeout: code that is stuck sends no heartbeats.
async fn ask_every(silence: Option<Duration>, shared: &WorkerCore, attempt: &Attempt) {
    let Some(silence) = silence else { return pending().await };
    while !attempt.lost() {
        sleep(silence).await;
        shared.present_one(attempt).await;
    }
}
