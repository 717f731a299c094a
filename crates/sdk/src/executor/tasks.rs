//! The tasks of a run: its main future first, then spawned futures and handlers, polled in the
//! order of their creation.

use std::{
    panic::Location,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::{
    board::Board,
    waker::{Advancing, ForeignWake, Guard, TaskWaker},
};
use crate::future::LocalBoxFuture;

/// All unfinished tasks of a run.
pub(super) struct Tasks {
    guard: Arc<Guard>,
    tasks: Vec<Task>,
    count: u64,
    /// Where the main task last issued a command, when the run is closed.
    closed_at: Option<&'static Location<'static>>,
}

struct Task {
    number: u64,
    future: LocalBoxFuture<'static, ()>,
    waker: Waker,
    ready: Arc<TaskWaker>,
    /// Where it last issued a command.
    place: Option<&'static Location<'static>>,
    over: bool,
}

impl Tasks {
    pub(super) fn new() -> Self {
        Self { guard: Guard::new(), tasks: Vec::new(), count: 0, closed_at: None }
    }

    /// Until the result is dropped, wakes on this thread are the run's own.
    pub(super) fn enter(&self) -> Advancing {
        self.guard.enter()
    }

    /// Adds a task, to be polled after all others.
    pub(super) fn add(&mut self, future: LocalBoxFuture<'static, ()>) {
        self.count += 1;
        let number = self.count;
        let ready = Arc::new(TaskWaker::new(self.guard.clone(), number));
        let waker = Waker::from(ready.clone());
        self.tasks.push(Task { number, future, waker, ready, place: None, over: false });
    }

    /// Adds the task of a handler and polls it once, before the other tasks.
    pub(super) fn begin(&mut self, future: LocalBoxFuture<'static, ()>, board: &Board) {
        self.add(future);
        if let Some(task) = self.tasks.last_mut() {
            task.poll_if_ready(board);
        }
    }

    /// Polls in rounds, in order of creation, until no task is woken or the run is closed.
    pub(super) fn run(&mut self, board: &Board) {
        loop {
            board.take_spawned().into_iter().for_each(|task| self.add(task));
            let mut polled = false;
            for task in &mut self.tasks {
                polled |= task.poll_if_ready(board);
                if board.silent() {
                    board.silence();
                    self.closed_at = self.main_place();
                    return self.tasks.clear();
                }
            }
            if !polled {
                break;
            }
        }
        self.tasks.retain(|task| !task.over);
    }

    /// The first foreign wake, if any, and where its task last issued a command.
    pub(super) fn foreign_wake(&self) -> Option<(ForeignWake, Option<&'static Location<'static>>)> {
        let wake = self.guard.foreign_wake()?;
        let task = self.tasks.iter().find(|task| task.number == wake.task);
        Some((wake, task.and_then(|task| task.place)))
    }

    /// Where the main task last issued a command.
    pub(super) fn main_place(&self) -> Option<&'static Location<'static>> {
        self.tasks.first().map_or(self.closed_at, |task| task.place)
    }
}

impl Task {
    /// Returns `true` if it was polled.
    fn poll_if_ready(&mut self, board: &Board) -> bool {
        if self.over || !self.ready.take_ready() {
            return false;
        }
        // Set before the poll, so that it is known if the task panics.
        board.set_place(self.place);
        let polled = self.future.as_mut().poll(&mut Context::from_waker(&self.waker));
        self.over = matches!(polled, Poll::Ready(()));
        self.place = board.take_place();
        true
    }
}
