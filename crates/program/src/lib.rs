//! A small interpreted workflow language for tests of the core, the engine and the server, which do
//! not depend on the SDK. A program is a tree of steps, as plain data that a generator can draw and
//! shrink. It covers every kind of command; it is not meant for people to write workflows in. The
//! simulator has its own programs, which run on the executor of the SDK.

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

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Steps of the workflow. A body that ends without closing the run completes it.
    pub body: Node,
    /// What it does when cancellation is requested.
    pub on_cancel: OnCancel,
    /// How long an accepted update takes; `None` completes it immediately. Updates named `reject`
    /// are rejected.
    pub update_delay: Option<Duration>,
}

/// What a program does when cancellation is requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCancel {
    /// Closes as cancelled.
    #[default]
    Close,
    Ignore,
}

impl Program {
    /// A program that runs `steps` one after the other.
    pub fn new(steps: impl Into<Vec<Node>>) -> Self {
        Self { body: Node::Sequence(steps.into()), ..Self::default() }
    }

    /// Code that runs the program from its start.
    pub fn code(&self) -> Interpreter {
        Interpreter::new(self.clone())
    }
}
