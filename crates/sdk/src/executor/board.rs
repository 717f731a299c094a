//! What the futures of a run share with its machine: they put up what they ask for and wait for; the
//! machine collects the commands and says what has happened.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    panic::Location,
    rc::Rc,
    task::{Poll, Waker},
    time::Duration,
};

use abide_core::{
    command::{Ask, Command},
    event::{
        ActivitySpec, ChildSpec, Guards, Origin, Outcome, RunStarted, TimerSpec, UpdateRequest,
    },
    ids::{ActivityId, EventNumber, TimerId, UpdateId, WorkflowId, WorkflowKey},
    payload::Payloads,
    time::Timestamp,
};

use super::{
    mailbox::{Mailbox, Signal},
    waits::{ChildClosed, Resolution, Subject, Wait, Waits},
};
use crate::future::LocalBoxFuture;

/// The shared part of a run.
#[derive(Default)]
struct Shared {
    commands: Vec<Command>,
    waits: Waits,
    mailbox: Mailbox,
    children: BTreeMap<u64, Child>,
    spawned: Vec<LocalBoxFuture<'static, ()>>,
    /// Accepted updates that have no outcome.
    updates: Vec<UpdateId>,
    counts: Counts,
}

/// What ids are made of; each kind counts on its own.
#[derive(Default)]
struct Counts {
    timers: u64,
    signal_waits: u64,
    activities: u64,
    children: u64,
    externals: u64,
    random: u64,
}

/// What is known of a child.
#[derive(Default)]
pub(crate) struct Child {
    pub(crate) initiated: Option<EventNumber>,
    pub(crate) outcome: Option<Result<Payloads, Box<ChildClosed>>>,
}

/// What a wait for a signal begins with.
pub(crate) enum Received {
    /// One was there.
    Signal(Signal),
    /// None was there, and no time was given.
    TimedOut,
    /// It must come.
    Waits(Wait),
}

/// What one task of the engine is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnInfo {
    pub(super) now: Timestamp,
    pub(super) replaying: bool,
    pub(super) suggest_continue_as_new: bool,
}

/// What futures and machine share.
pub(crate) struct Board {
    started: RunStarted,
    turn: Cell<TurnInfo>,
    cancel_requested: Cell<bool>,
    /// The run is closed, stopped or dropped: nothing is asked for any more.
    silent: Cell<bool>,
    /// Where the task that is being polled last asked for something durable.
    place: Cell<Option<&'static Location<'static>>>,
    shared: RefCell<Shared>,
}

impl std::fmt::Debug for Board {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Board").field("run", &self.started.run).finish_non_exhaustive()
    }
}

/// What contexts and futures ask.
impl Board {
    pub(crate) const fn started(&self) -> &RunStarted {
        &self.started
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.turn.get().now
    }

    pub(crate) fn replaying(&self) -> bool {
        self.turn.get().replaying
    }

    pub(crate) fn suggests_continue_as_new(&self) -> bool {
        self.turn.get().suggest_continue_as_new
    }

    pub(crate) fn cancel_requested(&self) -> bool {
        self.cancel_requested.get()
    }

    /// Remembers where code last asked for something, for the message of a fault.
    pub(crate) fn mark(&self, place: &'static Location<'static>) {
        self.place.set(Some(place));
    }

    /// Another workflow of the same namespace.
    pub(crate) fn neighbour(&self, workflow: WorkflowId) -> WorkflowKey {
        WorkflowKey { namespace: self.started.namespace.clone(), workflow }
    }

    pub(crate) fn spawn(&self, task: LocalBoxFuture<'static, ()>) {
        self.shared.borrow_mut().spawned.push(task);
    }

    /// The next number of the run's random sequence.
    pub(crate) fn next_random(&self) -> u64 {
        let mut shared = self.shared.borrow_mut();
        shared.counts.random += 1;
        shared.counts.random
    }

    /// Starts a timer.
    pub(crate) fn start_timer(self: &Rc<Self>, delay: Duration, origin: Origin) -> Wait {
        let mut shared = self.shared.borrow_mut();
        let fire_at = self.now().saturating_add(delay);
        let timer = shared.counts.timer();
        self.open_timer(&mut shared, timer, fire_at, origin, None)
    }

    /// Takes a signal, or begins to wait for one: for ever if no time is given.
    pub(crate) fn receive(
        self: &Rc<Self>,
        name: &'static str,
        timeout: Option<Duration>,
    ) -> Received {
        let mut shared = self.shared.borrow_mut();
        if let Some(signal) = shared.mailbox.take(name) {
            return Received::Signal(signal);
        }
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Received::TimedOut;
        }
        let (timer, fire_at) = match timeout {
            Some(timeout) => (shared.counts.timer(), self.now().saturating_add(timeout)),
            None => (shared.counts.signal_wait(), Timestamp::NEVER),
        };
        let origin = Origin::ExternalEvent { name: name.into() };
        Received::Waits(self.open_timer(&mut shared, timer, fire_at, origin, Some(name)))
    }

    /// Schedules an activity under the next id.
    pub(crate) fn schedule_activity(self: &Rc<Self>, spec: &ActivitySpec) -> (ActivityId, Wait) {
        let mut shared = self.shared.borrow_mut();
        let activity = shared.counts.activity();
        let spec = ActivitySpec { activity: activity.clone(), ..spec.clone() };
        self.ask(&mut shared, Ask::ScheduleActivity(spec));
        let wait = self.open(&mut shared, Subject::Activity(activity.clone()), None);
        (activity, wait)
    }

    /// Starts a child and gives its number.
    pub(crate) fn start_child(&self, child: ChildSpec) -> u64 {
        let mut shared = self.shared.borrow_mut();
        shared.counts.children += 1;
        let number = shared.counts.children;
        shared.children.insert(number, Child::default());
        self.ask(&mut shared, Ask::StartChild(Box::new(child)));
        number
    }

    /// Waits for a child to start or to close.
    pub(crate) fn wait_for_child(self: &Rc<Self>, subject: Subject) -> Wait {
        self.open(&mut self.shared.borrow_mut(), subject, None)
    }

    /// What is known of a child.
    pub(crate) fn child<T>(&self, number: u64, read: impl FnOnce(&Child) -> T) -> Option<T> {
        self.shared.borrow().children.get(&number).map(read)
    }

    /// Asks another workflow for something.
    pub(crate) fn ask_external(self: &Rc<Self>, ask: Ask) -> Wait {
        let mut shared = self.shared.borrow_mut();
        shared.counts.externals += 1;
        let number = shared.counts.externals;
        self.ask(&mut shared, ask);
        self.open(&mut shared, Subject::External(number), None)
    }

    pub(super) fn poll_wait(&self, number: u64, waker: &Waker) -> Poll<Resolution> {
        // A replaced waker is dropped after the borrow: it may own futures, which come back here.
        let polled = self.shared.borrow_mut().waits.poll(number, waker);
        polled.map_or(Poll::Pending, Poll::Ready)
    }

    /// The future of a wait was dropped: what it waits for is no longer needed.
    pub(super) fn abandon(&self, number: u64) {
        // Runs in drops, where a panic would abort: better to wait in vain than to borrow twice.
        let Ok(mut shared) = self.shared.try_borrow_mut() else { return };
        let Some(entry) = shared.waits.remove(number) else { return };
        match entry.resolution {
            None => self.withdraw(&mut shared, entry.subject),
            Some(Resolution::Signal(signal)) => {
                drop(shared);
                self.keep(signal);
            }
            Some(_) => {}
        }
    }

    fn open_timer(
        self: &Rc<Self>,
        shared: &mut Shared,
        timer: TimerId,
        fire_at: Timestamp,
        origin: Origin,
        signal: Option<&'static str>,
    ) -> Wait {
        let spec = TimerSpec {
            timer: timer.clone(),
            fire_at,
            origin: Some(origin),
            details: None,
            guards: Guards::default(),
        };
        self.ask(shared, Ask::StartTimer(spec));
        self.open(shared, Subject::Timer(timer), signal)
    }

    fn open(
        self: &Rc<Self>,
        shared: &mut Shared,
        subject: Subject,
        signal: Option<&'static str>,
    ) -> Wait {
        Wait::new(self.clone(), shared.waits.open(subject, signal))
    }

    fn ask(&self, shared: &mut Shared, ask: Ask) {
        if !self.silent.get() {
            self.silent.set(ask.closes());
            shared.commands.push(ask.into());
        }
    }

    /// Asks for the end of what a wait was about. Children and other workflows go on.
    fn withdraw(&self, shared: &mut Shared, subject: Subject) {
        match subject {
            Subject::Timer(timer) => self.ask(shared, Ask::CancelTimer(timer)),
            Subject::Activity(activity) => self.ask(shared, Ask::CancelActivity(activity)),
            Subject::ChildStart(_) | Subject::ChildClose(_) | Subject::External(_) => {}
        }
    }
}

/// What the machine says.
impl Board {
    pub(super) fn new(started: RunStarted, turn: TurnInfo) -> Self {
        Self {
            started,
            turn: Cell::new(turn),
            cancel_requested: Cell::new(false),
            silent: Cell::new(false),
            place: Cell::new(None),
            shared: RefCell::default(),
        }
    }

    pub(super) fn set_turn(&self, turn: TurnInfo) {
        self.turn.set(turn);
    }

    /// From here on nothing is asked for.
    pub(super) fn silence(&self) {
        self.silent.set(true);
    }

    pub(super) fn silent(&self) -> bool {
        self.silent.get()
    }

    /// A command of the machine itself.
    pub(super) fn command(&self, ask: Ask) {
        self.ask(&mut self.shared.borrow_mut(), ask);
    }

    pub(super) fn take_commands(&self) -> Vec<Command> {
        std::mem::take(&mut self.shared.borrow_mut().commands)
    }

    pub(super) fn take_spawned(&self) -> Vec<LocalBoxFuture<'static, ()>> {
        std::mem::take(&mut self.shared.borrow_mut().spawned)
    }

    pub(super) fn set_place(&self, place: Option<&'static Location<'static>>) {
        self.place.set(place);
    }

    pub(super) fn take_place(&self) -> Option<&'static Location<'static>> {
        self.place.take()
    }

    pub(super) fn accept_update(&self, update: UpdateId, request: UpdateRequest) {
        let mut shared = self.shared.borrow_mut();
        shared.updates.push(update.clone());
        self.ask(&mut shared, Ask::AcceptUpdate { update, request });
    }

    pub(super) fn complete_update(&self, update: UpdateId, outcome: Outcome) {
        let mut shared = self.shared.borrow_mut();
        shared.updates.retain(|open| *open != update);
        self.ask(&mut shared, Ask::CompleteUpdate { update, outcome });
    }

    /// Accepted updates that have no outcome, oldest first.
    pub(super) fn open_updates(&self) -> Vec<UpdateId> {
        self.shared.borrow().updates.clone()
    }

    /// Something durable is waited for.
    pub(super) fn waits(&self) -> bool {
        self.shared.borrow().waits.pending()
    }

    /// Signals that no code has seen, by number.
    pub(super) fn unread_signals(&self) -> Vec<EventNumber> {
        let shared = self.shared.borrow();
        let mut unread: Vec<_> = shared.mailbox.numbers().collect();
        unread.extend(shared.waits.unseen_signals());
        unread.sort_unstable();
        unread
    }

    /// Ends every wait for this subject.
    pub(super) fn resolve(&self, subject: &Subject, mut resolution: impl FnMut() -> Resolution) {
        let numbers = self.shared.borrow().waits.of(subject);
        for number in numbers {
            let ended = self.shared.borrow_mut().waits.resolve(number, resolution());
            wake(ended.and_then(|(_, waker)| waker));
        }
    }

    /// Gives a signal to the oldest wait for it, whose timer is then over; else keeps it.
    pub(super) fn keep(&self, signal: Signal) {
        let mut shared = self.shared.borrow_mut();
        let Some(number) = shared.waits.receiver(&signal.name) else {
            return shared.mailbox.put(signal);
        };
        let Some((subject, waker)) = shared.waits.resolve(number, Resolution::Signal(signal))
        else {
            return;
        };
        self.withdraw(&mut shared, subject);
        drop(shared);
        wake(waker);
    }

    /// Ends every pending wait, oldest first.
    pub(super) fn request_cancel(&self) {
        self.cancel_requested.set(true);
        let numbers = self.shared.borrow().waits.all_pending();
        for number in numbers {
            let mut shared = self.shared.borrow_mut();
            if let Some((subject, waker)) = shared.waits.resolve(number, Resolution::Cancelled) {
                self.withdraw(&mut shared, subject);
                drop(shared);
                wake(waker);
            }
        }
    }

    /// Changes what is known of a child.
    pub(super) fn update_child(&self, number: u64, change: impl FnOnce(&mut Child)) {
        change(self.shared.borrow_mut().children.entry(number).or_default());
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Counts {
    fn timer(&mut self) -> TimerId {
        self.timers += 1;
        format!("timer-{}", self.timers).into()
    }

    /// Counted apart: such a timer is absent from histories of code that did not record it.
    fn signal_wait(&mut self) -> TimerId {
        self.signal_waits += 1;
        format!("signal-{}", self.signal_waits).into()
    }

    fn activity(&mut self) -> ActivityId {
        self.activities += 1;
        format!("activity-{}", self.activities).into()
    }
}
