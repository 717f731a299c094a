//! A clock that stands still while anything is in progress, and skips to the next due time when
//! everything is idle and the test waits.
//!
//! One gauge counts everything: what the engine does, what workers hold (`observed`), and the test
//! itself while it is not waiting for a reply. When the gauge is at zero, only the passage of time
//! can cause anything, so time passes.
//!
//! A test that would wait forever gets an error: when nothing is due, and when time skips on and on
//! with only failures.

use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use abide_core::time::Timestamp;
use abide_engine::{
    Gauge, InFlight,
    clock::{Clock, ManualClock},
};
use tokio::{
    sync::{Notify, oneshot, watch},
    time::sleep,
};

use crate::lock::lock;

/// Maximum number of skips without a success; with the default policy that is days of retries.
const MOST_BARREN_SKIPS: u32 = 3_000;

/// How long nothing must be due and in progress before a waiting test gets an error. A test may do
/// something besides waiting, such as talking to another system.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Time {
    clock: Arc<ManualClock>,
    /// Gauge of the current engine.
    gauge: Mutex<Gauge>,
    /// Notified when the engine is replaced.
    changed: Notify,
    test: Mutex<Test>,
    /// Changes when the test would wait forever; holds the reason.
    stuck: watch::Sender<&'static str>,
}

/// State of the test.
struct Test {
    /// Number of its calls that wait for a reply.
    waits: usize,
    /// Set while it does something other than wait.
    runs: Option<InFlight>,
    /// Skips that it requested, and whom to notify.
    skips: Vec<(Timestamp, oneshot::Sender<()>)>,
    /// Pauses of code beside the test, and whom to notify.
    pauses: Vec<(Timestamp, oneshot::Sender<InFlight>)>,
    /// Number of skips since the last success.
    barren: u32,
}

/// Result of an attempt to move time.
enum Moved {
    On,
    /// Something is in progress.
    NotYet,
    /// Only something from outside can cause anything. Holds the state of the gauge.
    NothingDue(u64),
}

impl Time {
    pub(crate) fn new(clock: Arc<ManualClock>, gauge: Gauge) -> Self {
        let runs = Some(gauge.begin());
        let (skips, pauses) = (Vec::new(), Vec::new());
        let test = Mutex::new(Test { waits: 0, runs, skips, pauses, barren: 0 });
        let (gauge, changed) = (Mutex::new(gauge), Notify::new());
        Self { clock, gauge, changed, test, stuck: watch::Sender::new("") }
    }

    /// Switches to another engine. Must be called while the test does something other than wait.
    pub(crate) fn watch(&self, gauge: Gauge) {
        let runs = gauge.begin();
        *lock(&self.gauge) = gauge;
        self.lock().runs = Some(runs);
        self.changed.notify_one();
    }

    /// Changes when the test would wait forever; holds the reason.
    pub(crate) fn stuck(&self) -> watch::Receiver<&'static str> {
        self.stuck.subscribe()
    }

    /// Records that something succeeded, or that the test did something.
    pub(crate) fn progress(&self) {
        self.lock().barren = 0;
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Begins something that holds time.
    pub(crate) fn begin(&self) -> InFlight {
        self.gauge().begin()
    }

    /// Completes when this much time has passed, with a guard that holds time, or with `None` if
    /// the environment is gone. The time counts from this call.
    pub(crate) fn after(
        &self,
        duration: Duration,
    ) -> impl Future<Output = Option<InFlight>> + use<> {
        let (told, done) = oneshot::channel();
        let _work = self.begin();
        let at = self.now().saturating_add(duration);
        self.lock().pauses.push((at, told));
        async { done.await.ok() }
    }

    /// A call of the test starts waiting. Must be called while something holds time.
    pub(crate) fn begin_wait(&self) {
        let mut test = self.lock();
        test.waits += 1;
        test.runs = None;
    }

    /// A call of the test stops waiting. Must be called while something holds time.
    pub(crate) fn end_wait(&self) {
        self.lock().end_wait(&self.gauge());
    }

    /// Lets this much time pass, one due time after the other.
    pub(crate) async fn skip(&self, duration: Duration) {
        let (told, done) = oneshot::channel();
        {
            // Also wakes the task that moves time, which checks again when this ends.
            let _work = self.begin();
            let until = self.now().saturating_add(duration);
            self.lock().skips.push((until, told));
            self.begin_wait();
        }
        // The task that moves time ends with the environment, and then no caller is left.
        drop(done.await);
    }

    /// Moves time whenever possible.
    pub(crate) async fn pass(self: Arc<Self>) {
        loop {
            let gauge = self.gauge();
            let mut idle = pin!(gauge.until_idle());
            idle.as_mut().enable();
            match self.move_on(&gauge) {
                Moved::On => {}
                Moved::NotYet => tokio::select! {
                    () = idle => {}
                    () = self.changed.notified() => {}
                },
                Moved::NothingDue(seen) => tokio::select! {
                    () = idle => {}
                    () = self.changed.notified() => {}
                    () = sleep(PATIENCE) => {
                        if gauge.idle() == Some(seen) {
                            self.stuck.send_replace("nothing is in progress and nothing is due");
                        }
                    }
                },
            }
        }
    }

    /// Moves time to the next due time, if everything is idle.
    fn move_on(&self, gauge: &Gauge) -> Moved {
        let Some(idle) = gauge.idle() else { return Moved::NotYet };
        let alarm = self.clock.next_alarm().filter(|alarm| !alarm.is_never());
        let mut test = self.lock();
        let until = test.skips.iter().map(|(until, _)| *until).min();
        let pause = test.pauses.iter().map(|(until, _)| *until).min();
        if gauge.idle() != Some(idle) {
            // Something happened meanwhile, so the alarm may be stale.
            return Moved::NotYet;
        }
        let next = alarm.into_iter().chain(until).chain(pause).min();
        match next {
            // The receiver of the alarm has not noticed it yet.
            _ if alarm.is_some_and(|alarm| alarm <= self.now()) => Moved::NotYet,
            Some(_) if until.is_none() && test.barren >= MOST_BARREN_SKIPS => {
                test.barren = 0;
                self.stuck.send_replace(
                    "time has skipped thousands of times, and nothing but failures came",
                );
                Moved::NotYet
            }
            Some(next) => {
                test.barren += u32::from(until.is_none());
                self.clock.move_to(next);
                let paused = test.end_pauses(next, gauge);
                if !paused && alarm.is_none_or(|alarm| alarm > next) {
                    test.end_skip(next, gauge);
                }
                Moved::On
            }
            None => Moved::NothingDue(idle),
        }
    }

    fn gauge(&self) -> Gauge {
        lock(&self.gauge).clone()
    }

    fn lock(&self) -> MutexGuard<'_, Test> {
        lock(&self.test)
    }
}

impl Test {
    fn end_wait(&mut self, gauge: &Gauge) {
        self.waits -= 1;
        if self.waits == 0 {
            self.runs = Some(gauge.begin());
        }
    }

    /// Ends the pauses that are over, and returns whether there were any.
    fn end_pauses(&mut self, now: Timestamp, gauge: &Gauge) -> bool {
        let over = self.pauses.extract_if(.., |(until, _)| *until <= now);
        // The receiver may be gone.
        over.map(|(_, told)| told.send(gauge.begin()).is_ok()).fold(false, |any, told| any | told)
    }

    /// The time that the test skipped to has come, and nothing is due at it.
    fn end_skip(&mut self, now: Timestamp, gauge: &Gauge) {
        if let Some(index) = self.skips.iter().position(|(until, _)| *until == now) {
            let (_, told) = self.skips.swap_remove(index);
            self.end_wait(gauge);
            // The test may have stopped waiting.
            let _gone = told.send(());
        }
    }
}
