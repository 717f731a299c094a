//! A small interpreted workflow language for tests of the core, the engine and the server, which do not
//! see the SDK: a program is a tree of steps, as plain data that a generator can draw and shrink. It
//! exercises every kind of command; it is not meant for people to write workflows in. The simulator has
//! programs of its own, which run on the executor of the SDK.

mod call;
mod context;
mod interpreter;
mod live;
mod node;

use std::time::Duration;

pub use self::{
    interpreter::Interpreter,
    node::{Activity, Child, Node},
};

/// A workflow as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// What it does. A body that ends without closing the run completes it.
    pub body: Node,
    /// What it does when asked to cancel itself.
    pub on_cancel: OnCancel,
    /// How long an accepted update takes; none completes it at once. Updates named `reject` are
    /// rejected.
    pub update_delay: Option<Duration>,
}

/// What a program does when asked to cancel itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCancel {
    /// It closes as cancelled.
    #[default]
    Close,
    /// It goes on.
    Ignore,
}

impl Program {
    /// A program that does `steps` one after the other.
    pub fn new(steps: impl Into<Vec<Node>>) -> Self {
        Self { body: Node::Sequence(steps.into()), ..Self::default() }
    }

    /// Code that runs the program from its beginning.
    pub fn code(&self) -> Interpreter {
        Interpreter::new(self.clone())
    }
}
