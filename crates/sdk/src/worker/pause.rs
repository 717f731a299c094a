//! Workflow tasks that wait for local activities.
//!
//! A task whose code asked for local activities is not answered when code has come to rest, but kept
//! here, beside the thread, which goes on with other runs. Each end that comes is told to code. When none
//! is left, the task is completed with all that code has asked for meanwhile.
//!
//! The engine gives a task up that takes too long. So after half of its time it is completed with what
//! there is, and another is asked for at once; the local activities go on meanwhile, and their ends are
//! told to code in the next task. What came for the run in between, such as signals, is seen by that
//! task first.

use std::sync::Arc;

use abide_core::{
    ids::{RunId, StartId},
    replay::Completion,
    report::TaskToken,
};

use super::{
    local::LocalEnded,
    machine::{Machine, Rest},
    order::TaskOrder,
    thread::WorkflowThread,
};
use crate::transport::SessionSender;

/// A task that waits for local activities.
pub(super) struct Paused {
    task: TaskOrder,
    machine: Machine,
}

impl Paused {
    /// Where an answer goes, and to what.
    pub(super) fn answer_to(&self) -> (Arc<dyn SessionSender>, TaskToken) {
        (Arc::clone(&self.task.sender), self.task.token.clone())
    }
}

impl WorkflowThread {
    /// Code has come to rest in its task: the task is over unless local activities are waited for.
    pub(super) fn rest(&mut self, task: TaskOrder, mut machine: Machine, completion: Completion) {
        match machine.go_on_locally(&task.token, &mut self.launcher) {
            Ok(Rest::Nothing) => self.complete(task, machine, completion, Next::WhenNeeded),
            Ok(Rest::Waits) => {
                self.launcher.pause(&task.token, task.given.timeout / 2);
                self.paused.insert(task.token.run, Paused { task, machine });
            }
            Ok(Rest::WentOn) => self.complete_rested(task, machine),
            Err(trouble) => self.fail(task, trouble),
        }
    }

    /// A local activity ended: the task that waits for it goes on; without one, the next task will.
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

    fn complete_rested(&mut self, task: TaskOrder, machine: Machine) {
        let completion = machine.completion();
        self.complete(task, machine, completion, Next::WhenNeeded);
    }

    /// A task has waited long enough.
    pub(super) fn pause_over(&mut self, run: RunId, start: StartId) {
        let waits = |paused: &Paused| paused.task.token.start == start;
        if self.paused.get(&run).is_some_and(waits)
            && let Some(Paused { task, machine }) = self.paused.remove(&run)
        {
            let completion = machine.completion();
            self.complete(task, machine, completion, Next::AtOnce);
        }
    }
}

/// When the run's next task comes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// When something has come for the run.
    WhenNeeded,
    /// At once: code waits for what this worker does.
    AtOnce,
}
