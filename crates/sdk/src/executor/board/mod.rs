//! State that the futures of a run share with its machine: futures put commands and waits there;
//! the machine collects the commands and delivers events (`news`). Timers, and the waits that may
//! have one, are in `timers`; scopes and cancellation in `cancel`; recorded values in `markers`; memo and search
//! attributes in `attributes`;
//! running handlers in `handlers`; `locals` has the activities that the driver runs; `intercept` shows
//! all of it to interceptors; `verdicts` has which messages were refused.

mod attributes;
mod cancel;
mod handlers;
mod intercept;
mod locals;
mod markers;
mod news;
mod timers;
mod verdicts;

use std::{
    cell::{Cell, RefCell, RefMut},
    collections::BTreeMap,
    panic::Location,
    rc::Rc,
    task::{Poll, Waker},
};

use abide_core::{
    command::{Ask, Command, SourcePlace},
    event::{ActivitySpec, ChildSpec, RunSpec, RunStarted},
    ids::{ActivityId, EventNumber, TimerId, WorkflowId, WorkflowKey},
    payload::Payloads,
    time::Timestamp,
};

pub use self::locals::LocalWork;
pub(crate) use self::timers::{Received, Terms};
pub(in crate::executor) use self::verdicts::{Recorded, refused};
use self::{attributes::Attributes, handlers::Handlers, locals::Locals, markers::Markers};
use super::{
    mailbox::Mailbox,
    scope::Scope,
    waits::{ChildClosed, Ender, Resolution, Subject, Wait, Waits},
};
use crate::{
    context::OnCancel,
    future::LocalBoxFuture,
    interceptor::{Interceptors, Message, OutgoingKind},
};

/// State that futures and machine share.
pub(crate) struct Board {
    started: RunStarted,
    turn: Cell<TurnInfo>,
    /// The scope of the whole run.
    root: Rc<Scope>,
    /// The scope of the code that is being polled: new waits belong to it.
    scope: RefCell<Rc<Scope>>,
    /// The run is closed, stopped or dropped: no commands are issued any more.
    silent: Cell<bool>,
    /// A query, a validator or a condition is reading the state. They leave no trace in history, so
    /// they must not issue commands.
    looking: Cell<bool>,
    /// Where the task that is being polled last issued a command.
    place: Cell<Option<&'static Location<'static>>>,
    /// Moves from outside that code has not seen, shown to the query that is being answered.
    shown_moves: RefCell<BTreeMap<TimerId, Timestamp>>,
    /// The handler that is running, for the message of a panic.
    handling: RefCell<Option<Rc<str>>>,
    interceptors: Interceptors,
    /// When the run began.
    began: Timestamp,
    /// The message whose handler is running, for interceptors.
    message: RefCell<Option<Rc<Message>>>,
    shared: RefCell<BoardState>,
}

/// The part that changes while code runs.
#[derive(Default)]
struct BoardState {
    commands: Vec<Command>,
    waits: Waits,
    mailbox: Mailbox,
    handlers: Handlers,
    children: BTreeMap<u64, Child>,
    /// The due times of the open timers.
    due: BTreeMap<TimerId, Timestamp>,
    locals: Locals,
    markers: Markers,
    spawned: Vec<LocalBoxFuture<'static, ()>>,
    counts: IdCounts,
    attributes: Attributes,
}

/// Counters for ids, one for each kind.
#[derive(Default)]
struct IdCounts {
    timers: u64,
    signal_waits: u64,
    conditions: u64,
    activities: u64,
    side_effects: u64,
    locals: u64,
    children: u64,
    externals: u64,
    random: u64,
}

/// The state of a child.
pub(crate) struct Child {
    workflow: WorkflowKey,
    cancel: ChildCancel,
    pub(crate) initiated: Option<EventNumber>,
    pub(crate) outcome: Option<Result<Payloads, Box<ChildClosed>>>,
}

/// The state of a cancel request to a child.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChildCancel {
    NotWanted,
    /// Requested in the turn that starts the child: the child has no event number yet.
    Wanted,
    Asked,
}

/// The facts about one workflow task.
#[derive(Clone, Copy, Debug)]
pub(in crate::executor) struct TurnInfo {
    pub(in crate::executor) now: Timestamp,
    /// When the event happened that code is handling: not after `now`.
    pub(in crate::executor) happened: Timestamp,
    pub(in crate::executor) replaying: bool,
    /// Moves of timers take effect in the order of history; in older histories not all did.
    pub(in crate::executor) in_order: bool,
    pub(in crate::executor) suggest_continue_as_new: bool,
    /// Events and bytes of the history.
    pub(in crate::executor) history: (u64, u64),
    /// Messages for handlers that the task has and code has not seen.
    pub(in crate::executor) messages: usize,
}

impl std::fmt::Debug for Board {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Board").field("run", &self.started.run).finish_non_exhaustive()
    }
}

/// What contexts and futures call.
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

    pub(crate) fn history_events(&self) -> u64 {
        self.turn.get().history.0
    }

    pub(crate) fn history_bytes(&self) -> u64 {
        self.turn.get().history.1
    }

    /// Lets code read the state of the run. A command that it issues meanwhile is a panic, which
    /// the machine catches and reports.
    pub(crate) fn look<T>(&self, look: impl FnOnce() -> T) -> T {
        let looking = Looking::begin(&self.looking);
        let seen = look();
        drop(looking);
        seen
    }

    pub(crate) fn looking(&self) -> bool {
        self.looking.get()
    }

    /// Mutable access; panics if a query, a validator or a condition is running.
    fn change(&self) -> RefMut<'_, BoardState> {
        assert!(
            !self.looking(),
            "queries, validators and conditions only read a run; move commands to a handler"
        );
        self.shared.borrow_mut()
    }

    /// Records where code last issued a command, for the message of a fault.
    pub(crate) fn mark(&self, place: Option<&'static Location<'static>>) {
        self.place.set(place);
    }

    /// The key of another workflow in the same namespace.
    pub(crate) fn neighbour(&self, workflow: WorkflowId) -> WorkflowKey {
        WorkflowKey { namespace: self.started.namespace.clone(), workflow }
    }

    /// Starts a task beside the others; after the run is closed it is dropped.
    pub(crate) fn spawn(&self, task: LocalBoxFuture<'static, ()>) {
        if !self.silent.get() {
            self.change().spawned.push(task);
        }
    }

    /// The next number of the run's random sequence.
    pub(crate) fn next_random(&self) -> u64 {
        let mut shared = self.change();
        shared.counts.random += 1;
        shared.counts.random
    }

    /// Schedules an activity under the next id.
    pub(crate) fn schedule_activity(
        self: &Rc<Self>,
        mut spec: ActivitySpec,
        on_cancel: OnCancel,
    ) -> (ActivityId, Wait) {
        let ActivitySpec { activity_type, header, .. } = &mut spec;
        self.outgoing(OutgoingKind::Activity, (activity_type, None), header);
        let mut shared = self.change();
        let activity = shared.counts.activity();
        let spec = ActivitySpec { activity: activity.clone(), ..spec };
        self.ask(&mut shared, Ask::ScheduleActivity(spec));
        let subject = Subject::Activity(activity.clone());
        (activity, self.open_as(&mut shared, subject, Ender::Nothing, on_cancel))
    }

    /// Starts a child and returns its number.
    pub(crate) fn start_child(self: &Rc<Self>, mut child: ChildSpec) -> u64 {
        let RunSpec { workflow_type, header, .. } = &mut child.spec;
        let named = (&**workflow_type, Some(&child.workflow.workflow));
        self.outgoing(OutgoingKind::Child, named, header);
        let mut shared = self.change();
        shared.counts.children += 1;
        let number = shared.counts.children;
        shared.children.insert(number, Child::new(child.workflow.clone()));
        self.ask(&mut shared, Ask::StartChild(Box::new(child)));
        number
    }

    /// Waits for a child to start or to close.
    pub(crate) fn wait_for_child(self: &Rc<Self>, subject: Subject, on_cancel: OnCancel) -> Wait {
        self.open_as(&mut self.change(), subject, Ender::Nothing, on_cancel)
    }

    /// Reads the state of a child.
    pub(crate) fn child<T>(&self, number: u64, read: impl FnOnce(&Child) -> T) -> Option<T> {
        self.shared.borrow().children.get(&number).map(read)
    }

    /// Sends a request to another workflow.
    pub(crate) fn ask_external(self: &Rc<Self>, mut ask: Ask) -> Wait {
        if let Ask::SignalExternal { target, name, header, .. } = &mut ask {
            let named = (&**name, Some(&target.workflow.workflow));
            self.outgoing(OutgoingKind::Signal, named, header);
        }
        let mut shared = self.change();
        let number = shared.counts.external();
        self.ask(&mut shared, ask);
        self.open(&mut shared, Subject::External(number), Ender::Nothing)
    }

    pub(in crate::executor) fn poll_wait(&self, number: u64, waker: &Waker) -> Poll<Resolution> {
        // A replaced waker is dropped after the borrow: it may own futures whose drop calls the
        // board.
        let polled = self.shared.borrow_mut().waits.poll(number, waker);
        polled.map_or(Poll::Pending, Poll::Ready)
    }

    /// The future of a wait was dropped: what it waits for is no longer needed.
    pub(in crate::executor) fn abandon(&self, number: u64) {
        // Runs in drops, where a panic would abort the process: if the board is borrowed, the wait
        // stays.
        let Ok(mut shared) = self.shared.try_borrow_mut() else { return };
        let Some(mut entry) = shared.waits.remove(number) else { return };
        let resolution = entry.resolution.take();
        let alone = entry.cancel_asked || entry.on_cancel == OnCancel::Abandon;
        if resolution.is_none() && !alone {
            self.give_up(&mut shared, entry.subject.clone(), &entry.ender);
        }
        // The waker and the predicate may own futures whose drop calls the board.
        drop(shared);
        drop(entry);
        if let Some(Resolution::Signal(signal)) = resolution {
            self.keep(signal);
        }
    }

    fn open(self: &Rc<Self>, shared: &mut BoardState, subject: Subject, ender: Ender) -> Wait {
        self.open_as(shared, subject, ender, OnCancel::Cancel)
    }

    fn open_as(
        self: &Rc<Self>,
        shared: &mut BoardState,
        subject: Subject,
        ender: Ender,
        on_cancel: OnCancel,
    ) -> Wait {
        let number = shared.waits.open(subject, ender, on_cancel, self.scope());
        Wait::new(self.clone(), number)
    }

    fn ask(&self, shared: &mut BoardState, ask: Ask) {
        if !self.silent.get() {
            self.silent.set(ask.closes());
            let place = SourcePlace(self.place.get().filter(|_| issued_by_code(&ask)));
            shared.commands.push(Command { place, ..ask.into() });
        }
    }

    /// Cancels what a wait was for. Requests to other workflows stay.
    fn withdraw(&self, shared: &mut BoardState, subject: Subject) {
        match subject {
            Subject::Timer(timer) => self.cancel_timer(shared, timer),
            Subject::Activity(activity) => self.ask(shared, Ask::CancelActivity(activity)),
            Subject::Local(id) => shared.locals.give_up(id),
            Subject::ChildStart(child) | Subject::ChildClose(child) => {
                self.cancel_child(shared, child);
            }
            Subject::Condition(_)
            | Subject::External(_)
            | Subject::CancelRequest
            | Subject::Nothing => {}
        }
    }
}

/// Whether code issues the command by a call, whose place is then known. The others follow from an
/// event.
fn issued_by_code(ask: &Ask) -> bool {
    !ask.closes()
        && !matches!(
            ask,
            Ask::SatisfyWait(_)
                | Ask::TimeOutWait(_)
                | Ask::AcceptUpdate { .. }
                | Ask::RejectUpdate { .. }
                | Ask::CompleteUpdate { .. }
        )
        && !verdicts::is_verdict(ask)
}

/// Marks the state as being read; ends when dropped, also by a panic.
struct Looking<'a> {
    looking: &'a Cell<bool>,
    before: bool,
}

impl<'a> Looking<'a> {
    fn begin(looking: &'a Cell<bool>) -> Self {
        Self { looking, before: looking.replace(true) }
    }
}

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        self.looking.set(self.before);
    }
}

impl IdCounts {
    fn timer(&mut self) -> TimerId {
        self.timers += 1;
        format!("timer-{}", self.timers).into()
    }

    /// Counted apart: such a timer is absent from histories of code that did not record it.
    fn signal_wait(&mut self) -> TimerId {
        self.signal_waits += 1;
        format!("signal-{}", self.signal_waits).into()
    }

    /// The id of a condition wait, and of the timer of its deadline.
    fn condition(&mut self) -> String {
        self.conditions += 1;
        format!("condition-{}", self.conditions)
    }

    fn external(&mut self) -> u64 {
        self.externals += 1;
        self.externals
    }

    fn activity(&mut self) -> ActivityId {
        self.activities += 1;
        format!("activity-{}", self.activities).into()
    }
}
