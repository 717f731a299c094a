//! Time that stands still while anything is under way, and skips to the next due moment when all is
//! idle and the test waits.
//!
//! One gauge counts everything: what the engine does, what workers have been given (`observed`), and
//! the test itself while it is not waiting for an answer. When the gauge shows nothing, only the
//! passage of time can bring anything, so time passes.
//!
//! A test that waits in vain is told so: when nothing is due, and when time skips on and on while all
//! that happens is failures.

use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use abide_core::time::Timestamp;
use abide_engine::{
    Gauge, Work,
    clock::{Clock, ManualClock},
};
use tokio::{
    sync::{Notify, oneshot, watch},
    time::sleep,
};

/// So often time skips while nothing succeeds; by default that is days of retries.
const MOST_BARREN_SKIPS: u32 = 3_000;

/// How long nothing is due and nothing is under way before a test that waits is told. A test may do
/// something beside its wait, such as talk to another system.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time of a test environment.
pub(crate) struct Time {
    clock: Arc<ManualClock>,
    /// Of the engine that is there now.
    gauge: Mutex<Gauge>,
    /// Another engine is there.
    changed: Notify,
    test: Mutex<Test>,
    /// Changes when the test waits in vain; says why.
    stuck: watch::Sender<&'static str>,
}

/// What the test does.
struct Test {
    /// How many of its calls wait for an answer.
    waits: usize,
    /// There while it does something else than wait.
    runs: Option<Work>,
    /// Skips that it asked for, and whom to tell.
    skips: Vec<(Timestamp, oneshot::Sender<()>)>,
    /// Pauses of what runs beside the test, and whom to tell.
    pauses: Vec<(Timestamp, oneshot::Sender<Work>)>,
    /// How often time has skipped since anything succeeded.
    barren: u32,
}

/// What became of a try to move time.
enum Moved {
    On,
    /// Something is under way.
    NotYet,
    /// Only something from outside can bring anything. The gauge showed this.
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

    /// Looks at another engine from here on. To be told while the test does something else than wait.
    pub(crate) fn watch(&self, gauge: Gauge) {
        let runs = gauge.begin();
        *self.gauge.lock().unwrap_or_else(PoisonError::into_inner) = gauge;
        self.lock().runs = Some(runs);
        self.changed.notify_one();
    }

    /// Changes when the test waits in vain; says why.
    pub(crate) fn stuck(&self) -> watch::Receiver<&'static str> {
        self.stuck.subscribe()
    }

    /// Something succeeded, or the test did something.
    pub(crate) fn progress(&self) {
        self.lock().barren = 0;
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Something begins that holds time.
    pub(crate) fn begin(&self) -> Work {
        self.gauge().begin()
    }

    /// Ends when so much time has passed, with something that holds time; with nothing if the
    /// environment is gone. Begins at once.
    pub(crate) fn after(&self, duration: Duration) -> impl Future<Output = Option<Work>> + use<> {
        let (told, done) = oneshot::channel();
        let _work = self.begin();
        let at = self.now().saturating_add(duration);
        self.lock().pauses.push((at, told));
        async { done.await.ok() }
    }

    /// A call of the test waits. To be told from within something that holds time.
    pub(crate) fn begin_wait(&self) {
        let mut test = self.lock();
        test.waits += 1;
        test.runs = None;
    }

    /// A call of the test waits no longer. To be told from within something that holds time.
    pub(crate) fn end_wait(&self) {
        self.lock().end_wait(&self.gauge());
    }

    /// Lets this much time pass, moment by moment.
    pub(crate) async fn skip(&self, duration: Duration) {
        let (told, done) = oneshot::channel();
        {
            // Also wakes the mover: it looks again when this ends.
            let _work = self.begin();
            let until = self.now().saturating_add(duration);
            self.lock().skips.push((until, told));
            self.begin_wait();
        }
        // The mover ends with the environment, and then nobody is here.
        drop(done.await);
    }

    /// Moves time whenever it may.
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
                            self.stuck.send_replace("nothing is under way and nothing is due");
                        }
                    }
                },
            }
        }
    }

    /// Moves time to the next moment at which something is due, if all is idle.
    fn move_on(&self, gauge: &Gauge) -> Moved {
        let Some(idle) = gauge.idle() else { return Moved::NotYet };
        let alarm = self.clock.next_alarm().filter(|alarm| !alarm.never());
        let mut test = self.lock();
        let until = test.skips.iter().map(|(until, _)| *until).min();
        let pause = test.pauses.iter().map(|(until, _)| *until).min();
        if gauge.idle() != Some(idle) {
            // Something happened meanwhile, so the alarm may be of the past.
            return Moved::NotYet;
        }
        let next = alarm.into_iter().chain(until).chain(pause).min();
        match next {
            // Whoever the alarm is for has not noticed it yet.
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
        // Nothing panics while the lock is held, so what it guards is whole.
        self.gauge.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> MutexGuard<'_, Test> {
        // Nothing panics while the lock is held, so what it guards is whole.
        self.test.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Test {
    fn end_wait(&mut self, gauge: &Gauge) {
        self.waits -= 1;
        if self.waits == 0 {
            self.runs = Some(gauge.begin());
        }
    }

    /// Ends the pauses that are over, and tells whether there were any.
    fn end_pauses(&mut self, now: Timestamp, gauge: &Gauge) -> bool {
        let over = self.pauses.extract_if(.., |(until, _)| *until <= now);
        // Somebody who has gone needs not be told.
        over.map(|(_, told)| told.send(gauge.begin()).is_ok()).fold(false, |any, told| any | told)
    }

    /// The moment is there that the test wanted to come to, and nothing is due at it.
    fn end_skip(&mut self, now: Timestamp, gauge: &Gauge) {
        if let Some(index) = self.skips.iter().position(|(until, _)| *until == now) {
            let (_, told) = self.skips.swap_remove(index);
            self.end_wait(gauge);
            // A test that has gone needs no answer.
            let _gone = told.send(());
        }
    }
}
