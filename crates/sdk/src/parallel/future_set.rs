//! A set of futures of which only the woken ones are polled, lowest number first.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Wake, Waker},
};

use crate::lock::lock;

/// Futures by number. Dropping it drops them in the order of their numbers.
pub(super) struct FutureSet<F> {
    members: BTreeMap<u64, Member<F>>,
    bell: Arc<CrowdBell>,
}

struct Member<F> {
    future: Pin<Box<F>>,
    waker: Waker,
}

/// Records which members were woken, and wakes the task that polls the crowd.
#[derive(Default)]
struct CrowdBell(Mutex<Rung>);

#[derive(Default)]
struct Rung {
    woken: BTreeSet<u64>,
    outer: Option<Waker>,
}

struct MemberWaker {
    bell: Arc<CrowdBell>,
    number: u64,
}

impl<F: Future> FutureSet<F> {
    pub(super) fn new() -> Self {
        Self { members: BTreeMap::new(), bell: Arc::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Adds a future. It is first polled when the crowd is.
    pub(super) fn add(&mut self, number: u64, future: F) {
        let waker = Waker::from(Arc::new(MemberWaker { bell: self.bell.clone(), number }));
        self.members.insert(number, Member { future: Box::pin(future), waker });
        self.bell.lock().woken.insert(number);
    }

    /// Polls woken members until one has ended; none if the crowd is empty.
    pub(super) fn poll_next(&mut self, cx: &Context<'_>) -> Poll<Option<(u64, F::Output)>> {
        if self.members.is_empty() {
            return Poll::Ready(None);
        }
        self.bell.listen(cx.waker());
        while let Some(number) = self.bell.next() {
            // A member that has ended may still be woken.
            let Some(member) = self.members.get_mut(&number) else { continue };
            let mut context = Context::from_waker(&member.waker);
            if let Poll::Ready(output) = member.future.as_mut().poll(&mut context) {
                self.members.remove(&number);
                return Poll::Ready(Some((number, output)));
            }
        }
        Poll::Pending
    }
}

impl CrowdBell {
    fn listen(&self, waker: &Waker) {
        let mut rung = self.lock();
        if !rung.outer.as_ref().is_some_and(|outer| outer.will_wake(waker)) {
            rung.outer = Some(waker.clone());
        }
    }

    fn next(&self) -> Option<u64> {
        self.lock().woken.pop_first()
    }

    fn lock(&self) -> MutexGuard<'_, Rung> {
        lock(&self.0)
    }
}

impl Wake for MemberWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut rung = self.bell.lock();
        rung.woken.insert(self.number);
        let outer = rung.outer.clone();
        drop(rung);
        if let Some(outer) = outer {
            outer.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use super::*;

    /// Wakers by number, and how often all members were polled.
    #[derive(Default)]
    struct Seen {
        wakers: BTreeMap<u64, Waker>,
        over: BTreeSet<u64>,
        polls: u64,
    }

    fn member(number: u64, seen: &Rc<RefCell<Seen>>) -> impl Future<Output = u64> + use<> {
        let seen = seen.clone();
        std::future::poll_fn(move |cx| {
            let mut seen = seen.borrow_mut();
            seen.polls += 1;
            seen.wakers.insert(number, cx.waker().clone());
            if seen.over.contains(&number) { Poll::Ready(number) } else { Poll::Pending }
        })
    }

    #[test]
    fn each_wake_polls_only_what_was_woken() {
        const COUNT: u64 = 10_000;
        let seen = Rc::new(RefCell::new(Seen::default()));
        let mut crowd = FutureSet::new();
        (0..COUNT).for_each(|number| crowd.add(number, member(number, &seen)));
        let cx = Context::from_waker(Waker::noop());
        assert!(crowd.poll_next(&cx).is_pending());
        // The last one first, each in a wake of its own.
        for number in (0..COUNT).rev() {
            let waker = seen.borrow().wakers[&number].clone();
            seen.borrow_mut().over.insert(number);
            waker.wake();
            assert_eq!(crowd.poll_next(&cx), Poll::Ready(Some((number, number))));
        }
        assert_eq!(crowd.poll_next(&cx), Poll::Ready(None));
        assert_eq!(seen.borrow().polls, 2 * COUNT);
    }

    #[test]
    fn those_that_are_woken_together_are_polled_by_number() {
        let seen = Rc::new(RefCell::new(Seen::default()));
        let mut crowd = FutureSet::new();
        (0..3).for_each(|number| crowd.add(number, member(number, &seen)));
        let cx = Context::from_waker(Waker::noop());
        assert!(crowd.poll_next(&cx).is_pending());
        let wakers: Vec<_> = seen.borrow().wakers.values().cloned().collect();
        seen.borrow_mut().over.extend(0..3);
        wakers.into_iter().rev().for_each(Waker::wake);
        let mut order = Vec::new();
        while let Poll::Ready(Some((number, _))) = crowd.poll_next(&cx) {
            order.push(number);
        }
        assert_eq!(order, [0, 1, 2]);
    }
}
