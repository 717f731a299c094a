//! When workflow code of this process began to wait and went on, told around the engine.

use std::{
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use abide::Timestamp;
use tokio::sync::watch;

static WAITING: LazyLock<watch::Sender<u64>> = LazyLock::new(watch::Sender::default);
static RESUMED: LazyLock<watch::Sender<u64>> = LazyLock::new(watch::Sender::default);
static LATENESS: Mutex<Lateness> = Mutex::new(Lateness { late: Vec::new(), early: 0 });

/// How late code went on.
#[derive(Debug, Default)]
pub(super) struct Lateness {
    /// How long after the due time, one by one.
    pub(super) late: Vec<Duration>,
    /// How many went on before their time, which must not happen.
    pub(super) early: u64,
}

/// A run begins to wait.
pub(super) fn waits() {
    WAITING.send_modify(|count| *count += 1);
}

/// A run whose time was `due` goes on.
pub(super) fn goes_on(due: Timestamp, now: Timestamp) {
    {
        let mut lateness = lateness();
        lateness.late.push(now.saturating_since(due));
        lateness.early += u64::from(now < due);
    }
    RESUMED.send_modify(|count| *count += 1);
}

/// How many runs have begun to wait so far.
pub(super) fn waiting() -> u64 {
    *WAITING.borrow()
}

/// Waits until so many runs have begun to wait.
pub(super) async fn until_waiting(count: u64) {
    reaches(&WAITING, count).await;
}

/// How many runs have gone on so far.
pub(super) fn resumed() -> u64 {
    *RESUMED.borrow()
}

/// Waits until so many runs have gone on.
pub(super) async fn until_resumed(count: u64) {
    reaches(&RESUMED, count).await;
}

/// What was noted since this was asked last.
pub(super) fn take() -> Lateness {
    std::mem::take(&mut *lateness())
}

async fn reaches(counter: &watch::Sender<u64>, count: u64) {
    // The sender is never dropped, so this ends when the count is reached.
    let _ = counter.subscribe().wait_for(|reached| *reached >= count).await;
}

fn lateness() -> MutexGuard<'static, Lateness> {
    LATENESS.lock().unwrap_or_else(PoisonError::into_inner)
}
