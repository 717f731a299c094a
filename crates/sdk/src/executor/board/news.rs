//! The machine's side of the board: delivers events, and takes the commands.

use std::{
    cell::{Cell, RefCell},
    panic::Location,
    task::Waker,
};

use abide_core::{
    command::{Ask, Command},
    event::{RunCancelRequested, RunStarted},
    ids::{EventNumber, TimerId},
    time::Timestamp,
};

use super::{Board, Child, TurnInfo, verdicts::Recorded};
use crate::{
    executor::{
        mailbox::Signal,
        scope::{Cancellation, Scope, ScopeKind},
        waits::{Ender, Predicate, Resolution, Subject},
    },
    future::LocalBoxFuture,
    interceptor::Interceptors,
};

impl Board {
    pub(in crate::executor) fn new(
        started: RunStarted,
        turn: TurnInfo,
        interceptors: Interceptors,
    ) -> Self {
        let root = Scope::new(ScopeKind::Root);
        Self {
            started,
            turn: Cell::new(turn),
            scope: RefCell::new(root.clone()),
            root,
            silent: Cell::new(false),
            looking: Cell::new(false),
            place: Cell::new(None),
            shown_moves: RefCell::default(),
            handling: RefCell::default(),
            interceptors,
            began: turn.happened,
            message: RefCell::default(),
            shared: RefCell::default(),
        }
    }

    /// Starts a turn, for which history has these records.
    pub(in crate::executor) fn set_turn(&self, turn: TurnInfo, recorded: Recorded) {
        self.turn.set(turn);
        self.set_recorded(recorded);
    }

    /// Answers a query, which is never part of history: whatever code did last, this is no replay.
    pub(in crate::executor) fn outside_replay<T>(&self, answer: impl FnOnce() -> T) -> T {
        let turn = self.turn.get();
        self.turn.set(TurnInfo { replaying: false, ..turn });
        let answered = answer();
        self.turn.set(turn);
        answered
    }

    /// Sets the time of the next event.
    pub(in crate::executor) fn set_happened(&self, happened: Timestamp) {
        self.turn.set(TurnInfo { happened, ..self.turn.get() });
    }

    /// Stops all commands. Tasks that have not started are dropped: they own the board, so keeping
    /// them would be a reference cycle.
    pub(in crate::executor) fn silence(&self) {
        self.silent.set(true);
        drop(self.take_spawned());
    }

    pub(in crate::executor) fn silent(&self) -> bool {
        self.silent.get()
    }

    /// Issues a command of the machine itself.
    pub(in crate::executor) fn command(&self, ask: Ask) {
        self.ask(&mut self.shared.borrow_mut(), ask);
    }

    pub(in crate::executor) fn take_commands(&self) -> Vec<Command> {
        std::mem::take(&mut self.shared.borrow_mut().commands)
    }

    pub(in crate::executor) fn take_spawned(&self) -> Vec<LocalBoxFuture<'static, ()>> {
        std::mem::take(&mut self.shared.borrow_mut().spawned)
    }

    pub(in crate::executor) fn set_place(&self, place: Option<&'static Location<'static>>) {
        self.place.set(place);
    }

    pub(in crate::executor) fn take_place(&self) -> Option<&'static Location<'static>> {
        self.place.take()
    }

    /// Whether a recorded event can still end a wait.
    pub(in crate::executor) fn waits(&self) -> bool {
        self.shared.borrow().waits.pending()
    }

    /// Whether code waits for conditions.
    pub(in crate::executor) fn waits_for_conditions(&self) -> bool {
        !self.shared.borrow().waits.conditions().is_empty()
    }

    /// Numbers of the signals to carry to the next run: those that code has not received, and those
    /// whose handlers have not finished. `declared` are the names that the workflow knows.
    pub(in crate::executor) fn open_signals(&self, declared: &[&str]) -> Vec<EventNumber> {
        let shared = self.shared.borrow();
        let mut open = shared.mailbox.carried(declared);
        open.extend(shared.waits.unseen_signals());
        open.extend(shared.handlers.signals());
        open.sort_unstable();
        open
    }

    /// Keeps a signal that code cannot decode, for a later version that can; it is not received.
    pub(in crate::executor) fn set_aside(&self, number: EventNumber) {
        self.shared.borrow_mut().mailbox.set_aside(number);
    }

    /// Ends every wait for this subject.
    pub(in crate::executor) fn resolve(
        &self,
        subject: &Subject,
        mut resolution: impl FnMut() -> Resolution,
    ) {
        let numbers = self.shared.borrow().waits.of(subject);
        for number in numbers {
            let ended = self.shared.borrow_mut().waits.resolve(number, resolution());
            wake(ended.and_then(|ended| ended.waker));
        }
    }

    /// A timer fired. A condition whose deadline it was has timed out.
    pub(in crate::executor) fn fire(&self, timer: TimerId) {
        self.shared.borrow_mut().due.remove(&timer);
        let numbers = self.shared.borrow().waits.of(&Subject::Timer(timer));
        for number in numbers {
            let mut shared = self.shared.borrow_mut();
            let Some(ended) = shared.waits.resolve(number, Resolution::Fired) else { continue };
            if let Ender::Condition(wait, _) = ended.ender {
                self.ask(&mut shared, Ask::TimeOutWait(wait));
            }
            drop(shared);
            wake(ended.waker);
        }
    }

    /// Ends the oldest condition wait whose condition holds; `false` if none does. One at a time,
    /// because the code that continues may make another condition false again.
    pub(in crate::executor) fn satisfy_condition(&self) -> bool {
        let conditions = self.shared.borrow().waits.conditions();
        let holds = |(_, holds): &(u64, Predicate)| self.look(|| holds());
        let Some((number, _)) = conditions.into_iter().find(holds) else {
            return false;
        };
        let mut shared = self.shared.borrow_mut();
        if let Some(ended) = shared.waits.resolve(number, Resolution::Satisfied) {
            self.withdraw(&mut shared, ended.subject);
            if let Ender::Condition(wait, _) = ended.ender {
                self.ask(&mut shared, Ask::SatisfyWait(wait));
            }
            drop(shared);
            wake(ended.waker);
        }
        true
    }

    /// Delivers a signal to the oldest wait for it, whose timer is then cancelled; else keeps it.
    pub(in crate::executor) fn keep(&self, signal: Signal) {
        let mut shared = self.shared.borrow_mut();
        let Some(number) = shared.waits.receiver(&signal.name) else {
            return shared.mailbox.put(signal);
        };
        let Some(ended) = shared.waits.resolve(number, Resolution::Signal(signal)) else { return };
        self.withdraw(&mut shared, ended.subject);
        drop(shared);
        wake(ended.waker);
    }

    /// The run was asked to cancel itself.
    pub(in crate::executor) fn request_cancel(&self, request: &RunCancelRequested) {
        let cancellation = Cancellation::new(&request.reason, &request.identity);
        self.cancel_scope(&self.root, &cancellation);
    }

    /// Changes the state of a child.
    pub(in crate::executor) fn update_child(&self, number: u64, change: impl FnOnce(&mut Child)) {
        if let Some(child) = self.shared.borrow_mut().children.get_mut(&number) {
            change(child);
        }
    }
}

pub(super) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
