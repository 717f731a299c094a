//! The programs of `comparison/`, which `docs/comparison.md` shows beside those for other systems. They are not
//! listed: each is an example of its own, with explanations.

#[path = "../comparison/abide/approval.rs"]
mod approval;
#[path = "../comparison/abide/entity.rs"]
mod entity;
#[path = "../comparison/abide/fan_out.rs"]
mod fan_out;
#[path = "../comparison/abide/hello.rs"]
mod hello;
#[path = "../comparison/abide/saga.rs"]
mod saga;
#[path = "../comparison/abide/signal.rs"]
mod signal;

use crate::Program;

/// All of them, by the names under which the tests run them.
pub const PROGRAMS: &[(&str, Program)] = &[
    ("comparison-approval", approval::main),
    ("comparison-entity", entity::main),
    ("comparison-fan_out", fan_out::main),
    ("comparison-hello", hello::main),
    ("comparison-saga", saga::main),
    ("comparison-signal", signal::main),
];
