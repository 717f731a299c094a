//! The deterministic executor: runs workflow code as a small set of tasks, one step of history at a
//! time, and collects what it asks for.
//!
//! Files: [`machine`](Machine) takes the steps, `tasks` polls, `waker` tells a wake of the run from a
//! foreign one, `board` is what futures and machine share, `waits` and `mailbox` are its two tables.

mod board;
mod close;
mod fault;
mod machine;
mod mailbox;
mod outcome;
mod tasks;
mod waits;
mod waker;

pub use self::{board::LocalWork, machine::Machine};
pub(crate) use self::{
    board::{Board, Received, Terms},
    waits::{ActivityOutcome, Predicate, Resolution, Subject, Wait},
};
