//! Records when workflow code of this process began to wait and continued, bypassing the engine.

use std::{
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use abide::Timestamp;
use tokio::sync::watch;

static WAITING: LazyLock<watch::Sender<u64>> = LazyLock::new(watch::Sender::default);
static RESUMED: LazyLock<watch::Sender<u64>> = LazyLock::new(watch::Sender::default);
static GONE_ON: Mutex<GoneOn> = Mutex::new(GoneOn(Vec::new()));

/// For each wait, when code should have continued and when it did.
#[derive(Debug, Default)]
pub(crate) struct GoneOn(pub(crate) Vec<(Timestamp, Timestamp)>);

impl GoneOn {
    /// How late each one continued.
    pub(crate) fn late(&self) -> Vec<Duration> {
        self.0.iter().map(|(due, at)| at.saturating_since(*due)).collect()
    }

    /// How many continued before their time, which must not happen.
    pub(crate) fn early(&self) -> u64 {
        self.0.iter().filter(|(due, at)| at < due).count() as u64
    }
}

/// A run begins to wait.
pub(crate) fn waits() {
    WAITING.send_modify(|count| *count += 1);
}

/// A run that was due at `due` continues.
pub(crate) fn goes_on(due: Timestamp, now: Timestamp) {
    gone_on().0.push((due, now));
    RESUMED.send_modify(|count| *count += 1);
}

/// How many runs have begun to wait so far.
pub(crate) fn waiting() -> u64 {
    *WAITING.borrow()
}

/// Waits until so many runs have begun to wait.
pub(crate) async fn until_waiting(count: u64) {
    reaches(&WAITING, count).await;
}

/// How many runs have continued so far.
pub(crate) fn resumed() -> u64 {
    *RESUMED.borrow()
}

/// Waits until so many runs have continued.
pub(crate) async fn until_resumed(count: u64) {
    reaches(&RESUMED, count).await;
}

/// Returns what was recorded since the last call.
pub(crate) fn take() -> GoneOn {
    std::mem::take(&mut *gone_on())
}

async fn reaches(counter: &watch::Sender<u64>, count: u64) {
    // The sender is never dropped, so this ends when the count is reached.
    let _ = counter.subscribe().wait_for(|reached| *reached >= count).await;
}

fn gone_on() -> MutexGuard<'static, GoneOn> {
    GONE_ON.lock().unwrap_or_else(PoisonError::into_inner)
}
