//! Workflows as users write them, run by the true executor against the true decisions of the core.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and so do its helpers")]

// The macros name the crate as its users know it.
extern crate abide_sdk as abide;

mod activities;
mod approvals;
mod approvals_asked;
mod approvals_bounded;
mod approvals_drawn;
mod approvals_ended;
mod approvals_people;
mod approvals_shown;
mod approvals_unseen;
mod basics;
mod cancelling;
mod carried;
mod concurrency;
mod conditions;
mod deadlines;
mod drawn;
mod forms;
mod handlers;
mod intercepted;
mod leaks;
mod locals;
mod log;
mod on_cancel;
mod others;
mod parallel;
mod recorded;
mod rules;
mod scopes;
mod scopes_drawn;
mod signal_deadlines;
mod signals;
mod updates;
mod world;
mod wrapped;
