//! The pure core of Abide: its vocabulary, and two state machines that share one log.
//!
//! - Vocabulary: [`ids`], [`time`], [`payload`], [`digest`], [`failure`], [`retry`], [`cron`],
//!   [`limits`].
//! - Tables: [`event`] (what happened), [`note`] (what else the log keeps), [`command`] (what code
//!   requests), [`effect`] (what a run does to other workflows).
//! - Boundaries: [`operation`] (what clients and operators ask of an engine), [`dispatch`] and
//!   [`report`] (what workers get and report), [`list`] and [`tally`] (which runs and waits are listed
//!   and counted), [`search`] (by which attributes and queries), [`node`] (the nodes that serve them), [`follow`] (long polls, one after the other),
//!   [`carried`] (the user data in all of them).
//! - State machines: [`run`] (on the server), [`replay`] (on the worker); [`codec`] is the format
//!   of the log.
//!
//! Nothing here performs I/O, awaits, reads a clock, draws a random number or depends on the order
//! of a hash table. Time and ids come in as arguments.

#![warn(clippy::wildcard_enum_match_arm)]

pub mod attempt;
pub mod batch;
pub mod carried;
pub mod codec;
pub mod command;
pub mod digest;
pub mod dispatch;
pub mod effect;
pub mod event;
pub mod failure;
pub mod follow;
pub mod ids;
pub mod limits;
pub mod list;
pub mod node;
pub mod note;
pub mod operation;
pub mod payload;
pub mod replay;
pub mod report;
pub mod retry;
pub mod run;
pub mod schedule;
pub mod search;
pub mod tally;
pub mod time;
pub mod visible;
