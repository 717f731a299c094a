//! Wakers that know where a wake comes from. A wake while the run is being advanced, on its thread,
//! is the run's own; any other is foreign: history does not record it, so it is reported as a
//! fault.

use std::{
    cell::Cell,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Wake,
};

use crate::lock::lock;

thread_local! {
    /// The run that this thread advances; zero for none.
    static ADVANCED: Cell<u64> = const { Cell::new(0) };
}

/// Whether this thread is running workflow code.
pub(crate) fn runs_here() -> bool {
    ADVANCED.get() != 0
}

/// Runs code whose result is recorded, and which therefore does not count as workflow code.
pub(crate) fn outside<T>(action: impl FnOnce() -> T) -> T {
    let _outside = Advancing { before: ADVANCED.replace(0) };
    action()
}

/// State that the wakers of one run share.
#[derive(Debug)]
pub(super) struct Guard {
    run: u64,
    foreign: Mutex<Option<ForeignWake>>,
}

/// A wake from outside the run.
#[derive(Clone, Debug)]
pub(super) struct ForeignWake {
    /// The number of the woken task.
    pub(super) task: u64,
    /// The name of the waking thread.
    pub(super) thread: String,
}

impl Guard {
    pub(super) fn new() -> Arc<Self> {
        static RUNS: AtomicU64 = AtomicU64::new(1);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { run, foreign: Mutex::new(None) })
    }

    /// Until the result is dropped, wakes on this thread are the run's own.
    pub(super) fn enter(&self) -> Advancing {
        Advancing { before: ADVANCED.replace(self.run) }
    }

    /// The first foreign wake, if any.
    pub(super) fn foreign_wake(&self) -> Option<ForeignWake> {
        lock(&self.foreign).clone()
    }
}

/// While it lives, its run is being advanced on this thread.
#[derive(Debug)]
pub(super) struct Advancing {
    before: u64,
}

impl Drop for Advancing {
    fn drop(&mut self) {
        ADVANCED.set(self.before);
    }
}

#[derive(Debug)]
pub(super) struct TaskWaker {
    guard: Arc<Guard>,
    task: u64,
    ready: AtomicBool,
}

impl TaskWaker {
    /// The waker of a new task, which is ready to be polled.
    pub(super) const fn new(guard: Arc<Guard>, task: u64) -> Self {
        Self { guard, task, ready: AtomicBool::new(true) }
    }

    /// Returns and clears whether the task was woken.
    pub(super) fn take_ready(&self) -> bool {
        self.ready.swap(false, Ordering::Relaxed)
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if ADVANCED.get() == self.guard.run {
            self.ready.store(true, Ordering::Relaxed);
            return;
        }
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("without a name").to_owned();
        let mut foreign = lock(&self.guard.foreign);
        foreign.get_or_insert(ForeignWake { task: self.task, thread });
    }
}
