//! Random workflow programs. A world has a few types; a type may run lower-numbered types as
//! children, so that no family is endless. Each type has three versions: the right one, the one
//! before some parts were changed, and a wrong one, which fits no history of the others.

mod draw;
mod node;
mod work;

use std::{collections::BTreeMap, rc::Rc};

use abide_core::ids::{RunId, WorkflowKey};

pub(crate) use self::draw::reuse;
pub use self::{
    node::{Cleanup, Goal, Move, Node, Program, Quirk, Successor, Terms, Upsert},
    work::{Activity, Care, Child, Crowd, Local, Order, Saga, Undoable},
};
use crate::{code::Machine, rng::Rng};

const TYPES: usize = 5;

/// Signals that programs wait for by name and clients send.
pub const SIGNALS: [&str; 3] = ["go", "tell", "stop"];

/// A signal that no workflow declares: only a wait for any signal takes it.
pub const UNDECLARED_SIGNAL: &str = "stray";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// Code that fits every history.
    Right,
    /// Code before some parts were changed: fits histories that have not reached a change.
    Before,
    /// Code that fits no history.
    Wrong,
}

#[derive(Debug)]
pub struct Catalog {
    types: BTreeMap<String, Type>,
}

#[derive(Debug)]
struct Type {
    right: Rc<Program>,
    before: Rc<Program>,
    wrong: Rc<Program>,
}

impl Catalog {
    /// Draws the programs of a world, all with the given quirk, if any.
    pub fn draw(rng: &mut Rng, quirk: Option<Quirk>) -> Self {
        let types = (0..TYPES).map(|number| {
            let right = Program { quirk, ..draw::program(rng, number) };
            let before = Rc::new(Program { body: right.body.unpatched(), ..right.clone() });
            let wrong = Rc::new(spoil(&right));
            (type_name(number), Type { right: Rc::new(right), before, wrong })
        });
        Self { types: types.collect() }
    }

    /// Code of a type, at the start of a run.
    pub fn machine(
        &self,
        build: Build,
        workflow_type: &str,
        workflow: &WorkflowKey,
        run: RunId,
    ) -> Option<Machine> {
        let versions = self.types.get(workflow_type)?;
        let program = match build {
            Build::Right => &versions.right,
            Build::Before => &versions.before,
            Build::Wrong => &versions.wrong,
        };
        Machine::new(program, workflow_type, workflow, run)
    }

    /// The right program of a type.
    pub fn program(&self, workflow_type: &str) -> Option<&Program> {
        self.types.get(workflow_type).map(|versions| &*versions.right)
    }

    /// A type for a client to start.
    pub fn pick_type(rng: &mut Rng) -> String {
        type_name(rng.index(TYPES))
    }
}

fn type_name(number: usize) -> String {
    format!("type{number}")
}

/// Adds a step in front that no right program has: it fits no history with a completed task.
fn spoil(program: &Program) -> Program {
    let first = Node::Activity(Activity { activity_type: "spoilt", ..Activity::default() });
    let body = Node::Sequence(vec![first, program.body.clone()]);
    Program { body, ..program.clone() }
}
