//! Attempts that the engine has given up: they are asked to stop, and dropped if they do not, so that
//! they do not keep a slot for ever.
//!
//! Code that sends no heartbeats hears nothing from the engine. So when the time of its attempt is up,
//! the worker asks for it. The engine's clock decides, not the worker's.

use std::{future::pending, time::Duration};

use abide_core::event::ActivitySpec;
use tokio::time::sleep;

use super::{attempts::Attempt, shared::Shared};
use crate::backoff::Backoff;

/// How long code may take to stop after its attempt was given up.
pub(super) const STOP_GRACE: Duration = Duration::from_secs(1);

/// Between two questions whether an attempt whose time is up was given up.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// When the engine may have given an attempt up without the attempt's noticing.
#[derive(Clone, Copy)]
pub(super) struct Overdue {
    /// The attempt ends by then, counted from its start.
    limit: Option<Duration>,
    /// It is not silent for longer.
    silence: Option<Duration>,
}

impl Overdue {
    pub(super) fn of(spec: &ActivitySpec) -> Self {
        // The activity began no later than this attempt, so its limit is one of the attempt too.
        let limit = spec.start_to_close.into_iter().chain(spec.schedule_to_close).min();
        Self { limit, silence: spec.heartbeat }
    }

    /// Ready when the engine has given the attempt up and its code has had time to stop.
    pub(super) async fn given_up(self, shared: &Shared, attempt: &Attempt) {
        tokio::select! {
            () = attempt.losing() => {}
            () = ask_after(self.limit, shared, attempt) => {}
            () = ask_every(self.silence, shared, attempt) => {}
        }
        sleep(STOP_GRACE).await;
    }
}

/// Asks when the time of the attempt is up, until the engine has given it up.
async fn ask_after(limit: Option<Duration>, shared: &Shared, attempt: &Attempt) {
    let Some(limit) = limit else { return pending().await };
    sleep(limit).await;
    let mut backoff = Backoff::new(LONGEST_WAIT);
    while !attempt.lost() {
        shared.present_one(attempt).await;
        sleep(backoff.step()).await;
    }
}

/// Asks as often as there should be heartbeats: code that is stuck sends none.
async fn ask_every(silence: Option<Duration>, shared: &Shared, attempt: &Attempt) {
    let Some(silence) = silence else { return pending().await };
    while !attempt.lost() {
        sleep(silence).await;
        shared.present_one(attempt).await;
    }
}
