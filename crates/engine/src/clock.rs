//! The source of time. State machines never read a clock; the driver does, and only here.

mod ahead;
mod bell;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{LazyLock, Mutex},
    task::{Context, Poll},
    time::{Duration, Instant, SystemTime},
};

use abide_core::time::Timestamp;
pub use ahead::AheadClock;
use bell::Bell;
use tokio::sync::watch;

use crate::lock::lock;

/// A future that ends at a given time.
pub struct Sleep<'a> {
    ends: Timestamp,
    wait: Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
}

impl<'a> Sleep<'a> {
    fn new(ends: Timestamp, wait: impl Future<Output = ()> + Send + 'a) -> Self {
        Self { ends, wait: Box::pin(wait) }
    }
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.wait.as_mut().poll(context)
    }
}

/// A source of time.
pub trait Clock: Send + Sync {
    /// The current wall-clock time.
    fn now(&self) -> Timestamp;

    /// Sleeps until `until` or a little later; may end early if that is far away.
    fn sleep_until(&self, until: Timestamp) -> Sleep<'_>;

    /// Whether a running sleep can be reused to sleep until this time.
    fn suffices(&self, sleep: &Sleep<'_>, until: Timestamp) -> bool {
        sleep.ends == until
    }

    /// Whether a test moves this clock, and must know when nothing is in flight.
    fn moved_by_hand(&self) -> bool {
        false
    }
}

/// The wall clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// The longest sleep: a step of the system clock is noticed within this time.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Timers of the runtime are late by less than this; the bell thread waits for the rest exactly.
const LAST_LEG: Duration = Duration::from_millis(3);

/// One per process, started on first use. If the thread cannot start, the runtime's timers are
/// used.
static BELL: LazyLock<Option<Bell>> = LazyLock::new(|| {
    let warn =
        |error: &_| tracing::warn!(%error, "cannot start the timer thread: timers may be late");
    Bell::start().inspect_err(warn).ok()
});

#[expect(
    clippy::disallowed_methods,
    reason = "measures how long is still to wait, and how often a line is logged"
)]
pub(crate) fn monotonic_now() -> Instant {
    Instant::now()
}

/// Time since the machine was started, including time in suspend (on Linux). Leases are measured by
/// it.
pub(crate) fn since_boot() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// A step of the wall clock: the difference from the time it would show if time had only passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Size of the step.
    pub by: Duration,
    /// Whether the clock was set forwards.
    pub forwards: bool,
}

impl Step {
    /// Whether both may be the same step, noticed twice a moment apart.
    pub(crate) fn resembles(&self, other: &Self) -> bool {
        self.forwards == other.forwards && self.by.abs_diff(other.by) < STEP
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.forwards { '+' } else { '-' };
        write!(formatter, "{sign}{:.3}s", self.by.as_secs_f64())
    }
}

/// The smallest difference that counts as a step; anything less is a correction.
const STEP: Duration = Duration::from_secs(1);

/// Detects steps of a wall clock, by comparing it with a monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Steps(Option<(Timestamp, Duration)>);

impl Steps {
    /// Compares the wall clock (`shown`) with the time since boot (`passed`) since the last call.
    pub(crate) fn look(&mut self, shown: Timestamp, passed: Duration) -> Option<Step> {
        let (shown_before, passed_before) = self.0.replace((shown, passed))?;
        let expected = shown_before.saturating_add(passed.saturating_sub(passed_before));
        let (ahead, behind) = (shown.saturating_since(expected), expected.saturating_since(shown));
        let step = Step { by: ahead.max(behind), forwards: ahead > behind };
        (step.by >= STEP).then_some(step)
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Timestamp::EPOCH.saturating_add(since_epoch.unwrap_or_default())
    }

    fn sleep_until(&self, until: Timestamp) -> Sleep<'_> {
        let now = self.now();
        let duration = until.saturating_since(now);
        if duration >= LONGEST_SLEEP {
            let ends = now.saturating_add(LONGEST_SLEEP);
            return Sleep::new(ends, tokio::time::sleep(LONGEST_SLEEP));
        }
        let Some(bell) = &*BELL else { return Sleep::new(until, tokio::time::sleep(duration)) };
        let ends = monotonic_now() + duration;
        Sleep::new(until, async move {
            if let Some(first_leg) = duration.checked_sub(LAST_LEG) {
                tokio::time::sleep(first_leg).await;
            }
            bell.clone().ring_at(ends).await;
        })
    }

    /// Waking up early costs less than setting a timer for each message. A sleep may be late by up
    /// to `LAST_LEG`, so it must end that much earlier.
    fn suffices(&self, sleep: &Sleep<'_>, until: Timestamp) -> bool {
        sleep.ends == until || sleep.ends.saturating_add(LAST_LEG) <= until
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock {
    now: watch::Sender<Timestamp>,
    alarms: Mutex<Vec<Timestamp>>,
}

impl ManualClock {
    /// A clock that shows `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { now: watch::Sender::new(now), alarms: Mutex::default() }
    }

    /// Moves the clock forwards; it never goes backwards.
    pub fn move_to(&self, to: Timestamp) {
        self.now.send_if_modified(|now| {
            let later = to > *now;
            *now = to.max(*now);
            later
        });
    }

    /// The earliest end of all pending sleeps.
    pub fn next_alarm(&self) -> Option<Timestamp> {
        let alarms = lock(&self.alarms);
        alarms.iter().min().copied()
    }

    fn set_alarm(&self, at: Timestamp, set: bool) {
        let mut alarms = lock(&self.alarms);
        if set {
            alarms.push(at);
        } else if let Some(place) = alarms.iter().position(|alarm| *alarm == at) {
            alarms.swap_remove(place);
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.borrow()
    }

    fn sleep_until(&self, until: Timestamp) -> Sleep<'_> {
        let alarm = ManualAlarm::set(self, until);
        Sleep::new(until, async move {
            let _alarm = alarm;
            let mut now = self.now.subscribe();
            // The sender lives as long as `self`, so waiting cannot fail.
            drop(now.wait_for(|now| *now >= until).await);
        })
    }

    fn moved_by_hand(&self) -> bool {
        true
    }
}

/// A pending alarm of a [`ManualClock`]; removed when its sleep is dropped.
struct ManualAlarm<'a> {
    clock: &'a ManualClock,
    at: Timestamp,
}

impl<'a> ManualAlarm<'a> {
    fn set(clock: &'a ManualClock, at: Timestamp) -> Self {
        clock.set_alarm(at, true);
        Self { clock, at }
    }
}

impl Drop for ManualAlarm<'_> {
    fn drop(&mut self) {
        self.clock.set_alarm(self.at, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_told_from_one_that_goes_on() {
        let shown = |millis: u64| Timestamp::from_unix_millis(1_800_000_000_000 + millis);
        let mut steps = Steps::default();
        let mut look = |millis, passed| {
            let step = steps.look(shown(millis), Duration::from_millis(passed));
            step.map(|step| step.to_string())
        };
        assert_eq!(look(0, 50_000), None, "there is nothing to compare it with");
        assert_eq!(look(10_000, 60_000), None);
        assert_eq!(look(11_900, 61_000), None, "it was corrected");
        assert_eq!(look(3_612_900, 62_000).as_deref(), Some("+3600.000s"));
        assert_eq!(look(3_613_900, 63_000), None, "it goes on from there");
        assert_eq!(look(14_900, 64_000).as_deref(), Some("-3600.000s"));
    }

    #[tokio::test]
    async fn a_running_sleep_is_kept_if_it_cannot_end_late() {
        let clock = SystemClock;
        let sleep = clock.sleep_until(clock.now().saturating_add(Duration::from_secs(60)));
        let later = |more| sleep.ends.saturating_add(more);
        assert!(clock.suffices(&sleep, sleep.ends));
        assert!(!clock.suffices(&sleep, later(LAST_LEG / 2)), "it would be over before it ends");
        assert!(clock.suffices(&sleep, later(LAST_LEG)));
        let sooner = clock.sleep_until(clock.now());
        assert!(!clock.suffices(&sleep, sooner.ends));
    }
}
