//! The code that workers run: programs on the true executor of the SDK, and on the core's interpreter
//! where they have steps that the SDK does not offer.

mod steps;
mod workflow;

use std::rc::Rc;

use abide_core::{
    command::Command,
    event::{Event, UpdateAdmitted},
    failure::Failure,
    ids::{EventNumber, RunId, WorkflowKey},
    payload::{Payload, Payloads},
    program::{Interpreter, Program},
    replay::{Code, Completion, Error, Replay, Step},
};
use abide_sdk::registry::{Fault, WorkflowCode};

pub use self::workflow::HANDLED_SIGNALS;

/// Who runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The SDK's executor, as a workflow.
    Executor,
    /// The core's interpreter, which knows every step.
    Interpreter,
}

/// A run in the memory of a worker.
#[derive(Debug)]
pub struct Machine {
    replay: Replay<RunCode>,
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
enum RunCode {
    Executed(Executed),
    Interpreted(Box<Interpreter>),
}

/// A program on the SDK's executor.
struct Executed {
    program: Rc<Program>,
    code: Box<dyn WorkflowCode>,
}

impl Machine {
    /// A machine at the beginning of a run; none if the type has no workflow.
    pub fn new(
        runner: Runner,
        program: &Rc<Program>,
        workflow_type: &str,
        workflow: &WorkflowKey,
        run: RunId,
    ) -> Option<Self> {
        let code = match runner {
            Runner::Interpreter => RunCode::Interpreted(Box::new(program.code())),
            Runner::Executor => RunCode::Executed(Executed {
                program: program.clone(),
                code: workflow::registry().create(workflow_type, workflow, run)?,
            }),
        };
        Some(Self { replay: Replay::new(code) })
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

    /// Runs the open task.
    pub fn turn(&mut self, updates: &[UpdateAdmitted]) -> Result<Completion, Trouble> {
        let completion = self.replay.turn(updates);
        self.judged(completion)
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
        match self.replay.code_mut() {
            RunCode::Executed(executed) => executed.code.query(workflow::TRACE, &Vec::new()),
            RunCode::Interpreted(code) => Ok(vec![Payload::new(code.trace().join(";"))]),
        }
    }

    /// Code that was stopped emits nothing, which fits no history: the reason is what counts.
    fn judged<T>(&mut self, result: Result<T, Error>) -> Result<T, Trouble> {
        if let RunCode::Executed(executed) = self.replay.code_mut()
            && let Some(fault) = executed.code.take_fault()
        {
            return Err(Trouble::Fault(fault));
        }
        Ok(result?)
    }
}

impl Code for RunCode {
    fn advance(&mut self, step: Step<'_>) -> Vec<Command> {
        match self {
            Self::Executed(Executed { program, code }) => {
                workflow::with_program(program, || code.advance(step))
            }
            Self::Interpreted(code) => code.advance(step),
        }
    }
}

impl std::fmt::Debug for RunCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Executed(_) => "executed code",
            Self::Interpreted(_) => "interpreted code",
        })
    }
}
