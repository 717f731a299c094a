//! A thread that wakes futures at exact times. Tokio's timers count whole milliseconds and round
//! up; this thread is as precise as the operating system, and never early. It sleeps while nothing
//! waits.

use std::{
    collections::BTreeMap,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    thread,
    time::Instant,
};

use super::monotonic_now;
use crate::lock::lock;

/// Handle of the thread.
#[derive(Clone, Debug)]
pub(super) struct Bell(Arc<BellState>);

#[derive(Debug, Default)]
struct BellState {
    waiting: Mutex<Sleepers>,
    sooner: Condvar,
}

/// Wakers in order of time; a number distinguishes those of the same time.
#[derive(Debug, Default)]
struct Sleepers {
    wakers: BTreeMap<AlarmKey, Waker>,
    numbers: u64,
}

type AlarmKey = (Instant, u64);

impl Bell {
    /// Starts the thread, which runs as long as the process.
    pub(super) fn start() -> io::Result<Self> {
        let shared = Arc::new(BellState::default());
        let bell = Self(Arc::clone(&shared));
        thread::Builder::new().name("abide-clock".into()).spawn(move || shared.ring())?;
        Ok(bell)
    }

    /// Returns a future that ends at this time.
    pub(super) fn ring_at(self, at: Instant) -> Ring {
        Ring { bell: self, at, place: None }
    }
}

impl BellState {
    fn ring(&self) {
        let mut waiting = self.lock();
        loop {
            let now = monotonic_now();
            let Some((&(at, _), _)) = waiting.wakers.first_key_value() else {
                waiting = self.sooner.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if at > now {
                let (again, _) = self
                    .sooner
                    .wait_timeout(waiting, at - now)
                    .unwrap_or_else(PoisonError::into_inner);
                waiting = again;
            } else if let Some((_, waker)) = waiting.wakers.pop_first() {
                drop(waiting);
                waker.wake();
                waiting = self.lock();
            }
        }
    }

    /// The map is consistent whenever the lock is released, also by a panic.
    fn lock(&self) -> MutexGuard<'_, Sleepers> {
        lock(&self.waiting)
    }
}

/// A future that ends at a given time.
#[derive(Debug)]
pub(super) struct Ring {
    bell: Bell,
    at: Instant,
    place: Option<AlarmKey>,
}

impl Future for Ring {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if monotonic_now() >= self.at {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        let bell = self.bell.clone();
        let mut waiting = bell.0.lock();
        let place = self.place.unwrap_or_else(|| {
            waiting.numbers += 1;
            (self.at, waiting.numbers)
        });
        waiting.wakers.insert(place, waker);
        let first = waiting.wakers.first_key_value().is_some_and(|(first, _)| *first == place);
        drop(waiting);
        if first {
            bell.0.sooner.notify_one();
        }
        self.place = Some(place);
        Poll::Pending
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            self.bell.0.lock().wakers.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, task::Wake, time::Duration};

    use super::*;

    /// Sends the time at which it was woken.
    struct Woken(mpsc::Sender<Instant>);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.send(monotonic_now()).unwrap();
        }
    }

    fn poll(ring: &mut Ring, woken: &mpsc::Sender<Instant>) -> Poll<()> {
        let waker = Waker::from(Arc::new(Woken(woken.clone())));
        Pin::new(ring).poll(&mut Context::from_waker(&waker))
    }

    #[test]
    fn it_rings_in_order_of_time_and_never_early() {
        let (sender, woken) = mpsc::channel();
        let bell = Bell::start().unwrap();
        let begun = monotonic_now();
        let (late, soon) = (begun + Duration::from_millis(600), begun + Duration::from_millis(300));
        let mut rings = [late, soon].map(|at| bell.clone().ring_at(at));
        for ring in &mut rings {
            assert!(poll(ring, &sender).is_pending());
        }
        assert!(woken.recv().unwrap() >= soon);
        assert!(poll(&mut rings[1], &sender).is_ready());
        assert!(woken.recv().unwrap() >= late);
        assert!(poll(&mut rings[0], &sender).is_ready());
    }

    #[test]
    fn who_has_gone_is_not_woken() {
        let (sender, woken) = mpsc::channel();
        let bell = Bell::start().unwrap();
        let at = monotonic_now() + Duration::from_secs(60);
        let mut gone = bell.clone().ring_at(at);
        assert!(poll(&mut gone, &sender).is_pending());
        drop(gone);
        drop(sender);
        assert!(woken.recv().is_err(), "its waker is dropped with it");
    }
}
