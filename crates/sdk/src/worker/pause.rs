//! Workflow tasks that wait for local activities.
//!
//! A task whose code started local activities is not completed when code can make no more progress.
//! It is kept here, and the thread continues with other runs. Each end that arrives is delivered to
//! code. When none is left, the task is completed with all commands that code has issued meanwhile.
//!
//! The engine times out a task that takes too long. So after half of that time the task is
//! completed with the commands so far, and another task is requested at once; the local activities
//! keep running, and their ends are delivered in the next task. Events that arrived for the run in
//! between, such as signals, are delivered to code first.

use std::sync::Arc;

use abide_core::{
    ids::{RunId, StartId},
    replay::Completion,
    report::TaskToken,
};

use super::{
    cached_run::{CachedRun, Rest},
    local::LocalEnded,
    thread::WorkflowThread,
    thread_message::TaskMessage,
};
use crate::transport::SessionSender;

pub(super) struct Paused {
    task: TaskMessage,
    machine: CachedRun,
}

impl Paused {
    /// The start of the task.
    pub(super) const fn start(&self) -> StartId {
        self.task.token.start
    }

    /// The reply channel of the task, and its token.
    pub(super) fn answer_to(&self) -> (Arc<dyn SessionSender>, TaskToken) {
        (Arc::clone(&self.task.sender), self.task.token.clone())
    }
}

impl WorkflowThread {
    /// Code can make no more progress: the task is completed unless it waits for local activities.
    pub(super) fn rest(
        &mut self,
        task: TaskMessage,
        mut machine: CachedRun,
        completion: Completion,
    ) {
        match machine.go_on_locally(&task.token, &mut self.launcher) {
            Ok(Rest::Nothing) => self.complete(task, machine, completion, NextTask::WhenNeeded),
            Ok(Rest::Waits) => {
                self.launcher.pause(&task.token, task.given.timeout / 2);
                self.paused.insert(task.token.run, Paused { task, machine });
            }
            Ok(Rest::WentOn) => self.complete_rested(task, machine),
            Err(trouble) => self.fail(task, trouble),
        }
    }

    /// A local activity ended: the task that waits for it continues; without one, the next task
    /// delivers it.
    pub(super) fn local_ended(&mut self, ended: LocalEnded) {
        let run = ended.token.run;
        let Some(Paused { task, mut machine }) = self.paused.remove(&run) else {
            if let Some(mut machine) = self.cache.take(run) {
                machine.locals().end(ended);
                drop(self.cache.keep(run, machine));
            }
            return;
        };
        machine.locals().end(ended);
        match machine.go_on_locally(&task.token, &mut self.launcher) {
            Ok(Rest::Waits) => {
                self.paused.insert(run, Paused { task, machine });
            }
            Ok(Rest::Nothing | Rest::WentOn) => self.complete_rested(task, machine),
            Err(trouble) => self.fail(task, trouble),
        }
    }

    fn complete_rested(&mut self, task: TaskMessage, machine: CachedRun) {
        let completion = machine.completion();
        self.complete(task, machine, completion, NextTask::WhenNeeded);
    }

    /// The pause of a task is over: it is completed with what code has issued so far.
    pub(super) fn pause_over(&mut self, run: RunId, start: StartId) {
        let waits = |paused: &Paused| paused.start() == start;
        if self.paused.get(&run).is_some_and(waits)
            && let Some(Paused { task, machine }) = self.paused.remove(&run)
        {
            let completion = machine.completion();
            self.complete(task, machine, completion, NextTask::AtOnce);
        }
    }
}

/// When the engine creates the run's next task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NextTask {
    /// When a new event for the run needs one.
    WhenNeeded,
    /// At once: code waits for local activities of this worker.
    AtOnce,
}
