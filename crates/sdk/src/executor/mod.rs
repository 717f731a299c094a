//! The deterministic executor: runs workflow code as a small set of tasks, one step of history at a
//! time, and collects its commands.
//!
//! Files: [`machine`](Machine) takes the steps, `tasks` polls, `waker` distinguishes the run's own
//! wakes from foreign ones, `board` is the state that futures and machine share, `waits` and
//! `mailbox` are its two tables, `scope` is the tree by which waits are cancelled.

mod board;
mod close;
mod fault;
mod handlers;
mod machine;
mod mailbox;
mod outcome;
mod scope;
mod tasks;
mod waits;
mod waker;

pub use self::{board::LocalWork, machine::Machine, scope::Cancellation};
pub(crate) use self::{
    board::{Board, Child, Received, Terms},
    scope::{Scope, ScopeKind},
    waits::{ActivityOutcome, ChildClosed, Predicate, Resolution, Subject, Wait},
};
pub(crate) use self::{
    fault::stop_awaited_activity,
    waker::{outside, runs_here},
};
