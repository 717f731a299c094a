//! The code that workers run: programs as workflows on the real executor of the SDK.

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
    operation::QueryRequest,
    payload::Payloads,
    replay::{Code, Completion, Error, Replay, Step},
    time::Timestamp,
};
use abide_sdk::{
    activity::LocalActivity,
    executor::LocalWork,
    registry::{TaskFault, WorkflowCode},
};

pub use self::{
    crowds::CROWD,
    sagas::{NOT_UNDONE, STEP, STUBBORN_UNDO, UNDO, UNDONE},
    scopes::CLEANUP_STEPS,
    workflow::{APPROVERS, HANDLED_SIGNALS, OUTSIDER, begin_world, make_value, waits_for_handlers},
};
use crate::{
    names,
    programs::{Program, Quirk},
};

/// A run in a worker's cache.
#[derive(Debug)]
pub struct Machine {
    replay: Replay<RunCode>,
    /// Running local activities, in the order in which code started them.
    locals: Vec<LocalActivity>,
}

/// Why a machine cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The executor stopped the code; right code never gives it a reason to.
    #[error("the executor stopped the code: {}", .0.failure.message)]
    Fault(TaskFault),
    /// History and code do not match, or events are missing.
    #[error(transparent)]
    Replay(#[from] Error),
}

/// The code of one run.
struct RunCode {
    program: Rc<Program>,
    code: Box<dyn WorkflowCode>,
}

impl Machine {
    /// A machine at the start of a run; `None` if the type has no workflow.
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

    /// Declares that the history ends here.
    pub fn settle(&mut self) -> Result<(), Trouble> {
        let settled = self.replay.settle();
        self.judged(settled)
    }

    /// Runs the open task. `ends` decides which of the running local activities end within it, and
    /// how; it is called again whenever code has advanced.
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

    /// Whether local activities keep running after the task.
    pub fn runs_locally(&self) -> bool {
        !self.locals.is_empty()
    }

    /// Number of the last event that was fed.
    pub const fn seen(&self) -> EventNumber {
        self.replay.seen()
    }

    /// The last completed task that was fed.
    pub const fn acknowledged(&self) -> EventNumber {
        self.replay.acknowledged()
    }

    /// Outcomes of the program's steps so far, as the answer to a query.
    pub fn trace(&mut self) -> Result<Payloads, Failure> {
        let moves = self.replay.unseen_moves();
        self.replay.code_mut().code.query(&QueryRequest::new(workflow::TRACE, Vec::new()), moves)
    }

    /// Outcomes of the program's steps so far, one by one.
    pub fn steps(&mut self) -> Vec<String> {
        let trace = self.trace().unwrap_or_default();
        let texts = trace.iter().map(|text| String::from_utf8_lossy(&text.data));
        texts.flat_map(|text| text.split(';').map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    /// Stopped code emits nothing, which matches no history; the reason for the stop is the real
    /// error.
    fn judged<T>(&mut self, result: Result<T, Error>) -> Result<T, Trouble> {
        match self.replay.code_mut().code.take_fault() {
            Some(fault) => Err(Trouble::Fault(fault)),
            None => Ok(result?),
        }
    }
}

impl Code for RunCode {
    fn advance(&mut self, at: Timestamp, step: Step<'_>) -> Vec<Command> {
        let at = match &step {
            Step::Signal { signal, .. } if self.program.quirk == Some(Quirk::LaterClock) => {
                signal.received_at
            }
            _ => at,
        };
        let mut asked = workflow::with_program(&self.program, || self.code.advance(at, step));
        if self.program.quirk == Some(Quirk::MoveIgnored) {
            asked.retain(|command| !matches!(command.ask, Ask::RescheduleTimer { .. }));
        }
        asked.iter_mut().for_each(send_home);
        asked
    }
}

/// The SDK knows workflows of its own namespace only. The id of a workflow tells its true one.
fn send_home(command: &mut Command) {
    let workflow = match &mut command.ask {
        Ask::StartChild(child) => &mut child.workflow,
        Ask::SignalExternal { target, .. } | Ask::CancelExternal { target, .. } => {
            &mut target.workflow
        }
        _ => return,
    };
    *workflow = names::key(workflow.workflow.as_str());
}

impl std::fmt::Debug for RunCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("code of a run")
    }
}
