//! The code that workers run: programs as workflows on the true executor of the SDK.

mod children;
mod crowds;
mod handlers;
mod sagas;
mod scopes;
mod steps;
mod waits;
mod workflow;

use std::rc::Rc;

use abide_core::{
    command::{Ask, Command},
    event::{Event, Marker, UpdateAdmitted},
    failure::Failure,
    ids::{EventNumber, RunId, WorkflowKey},
    payload::Payloads,
    replay::{Code, Completion, Error, Replay, Step},
};
use abide_sdk::{
    activity::LocalActivity,
    executor::LocalWork,
    registry::{Fault, WorkflowCode},
};

pub use self::{
    crowds::CROWD,
    sagas::{NOT_UNDONE, STEP, STUBBORN_UNDO, UNDO, UNDONE},
    scopes::CLEANUP_STEPS,
    workflow::{APPROVERS, HANDLED_SIGNALS, OUTSIDER, begin_world, make_value, waits_for_handlers},
};
use crate::programs::{Program, Quirk};

/// A run in the memory of a worker.
#[derive(Debug)]
pub struct Machine {
    replay: Replay<RunCode>,
    /// The local activities that run, in the order in which code asked.
    locals: Vec<LocalActivity>,
}

/// Why a machine cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The executor stopped the code: right code never gives it a reason.
    #[error("the executor stopped the code: {}", .0.failure.message)]
    Fault(Fault),
    /// History and code do not fit, or events are missing.
    #[error(transparent)]
    Replay(#[from] Error),
}

/// The code of one run.
struct RunCode {
    program: Rc<Program>,
    code: Box<dyn WorkflowCode>,
}

impl Machine {
    /// A machine at the beginning of a run; none if the type has no workflow.
    pub fn new(
        program: &Rc<Program>,
        workflow_type: &str,
        workflow: &WorkflowKey,
        run: RunId,
    ) -> Option<Self> {
        let code = workflow::registry().create(workflow_type, workflow, run)?;
        let replay = Replay::new(RunCode { program: program.clone(), code });
        Some(Self { replay, locals: Vec::new() })
    }

    /// Takes the next events.
    pub fn feed(&mut self, events: impl IntoIterator<Item = Event>) -> Result<(), Trouble> {
        let fed = self.replay.feed(events);
        self.judged(fed)
    }

    /// Says that the history ends here.
    pub fn settle(&mut self) -> Result<(), Trouble> {
        let settled = self.replay.settle();
        self.judged(settled)
    }

    /// Runs the open task. `ends` says which of the local activities that run end within it, and how; it
    /// is asked again whenever code has gone on.
    pub fn turn(
        &mut self,
        updates: &[UpdateAdmitted],
        mut ends: impl FnMut(&[LocalActivity]) -> Option<Marker>,
    ) -> Result<Completion, Trouble> {
        let turned = self.replay.turn(updates);
        self.judged(turned)?;
        loop {
            let LocalWork { begin, give_up } = self.replay.code_mut().code.take_local_work();
            self.locals.extend(begin);
            self.locals.retain(|local| !give_up.contains(&local.id));
            if self.replay.closes() {
                self.locals.clear();
            }
            let Some(ended) = ends(&self.locals) else { return Ok(self.replay.completion()) };
            self.locals.retain(|local| local.id != ended.id);
            let told = self.replay.local_resolved(&ended);
            self.judged(told)?;
        }
    }

    /// Local activities run on after the task.
    pub fn runs_locally(&self) -> bool {
        !self.locals.is_empty()
    }

    /// The number of the last event that was fed.
    pub const fn seen(&self) -> EventNumber {
        self.replay.seen()
    }

    /// The last completed task that was fed.
    pub const fn acknowledged(&self) -> EventNumber {
        self.replay.acknowledged()
    }

    /// What the program's steps came to so far, as the answer to a query.
    pub fn trace(&mut self) -> Result<Payloads, Failure> {
        let moves = self.replay.unseen_moves();
        self.replay.code_mut().code.query(workflow::TRACE, &Vec::new(), moves)
    }

    /// What the program's steps came to so far, one by one.
    pub fn steps(&mut self) -> Vec<String> {
        let trace = self.trace().unwrap_or_default();
        let texts = trace.iter().map(|text| String::from_utf8_lossy(&text.data));
        texts.flat_map(|text| text.split(';').map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    /// Code that was stopped emits nothing, which fits no history: the reason is what counts.
    fn judged<T>(&mut self, result: Result<T, Error>) -> Result<T, Trouble> {
        match self.replay.code_mut().code.take_fault() {
            Some(fault) => Err(Trouble::Fault(fault)),
            None => Ok(result?),
        }
    }
}

impl Code for RunCode {
    fn advance(&mut self, step: Step<'_>) -> Vec<Command> {
        let mut asked = workflow::with_program(&self.program, || self.code.advance(step));
        if self.program.quirk == Some(Quirk::MoveIgnored) {
            asked.retain(|command| !matches!(command.ask, Ask::RescheduleTimer { .. }));
        }
        asked
    }
}

impl std::fmt::Debug for RunCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("code of a run")
    }
}
