//! How what an engine says is shown to people and programs.

mod blocked;
mod event;
mod failure;
mod payload;

pub(crate) use self::{
    blocked::{blocked, blocked_lines},
    event::{condition, fields, mover, origin},
    failure::{failure, failure_lines},
    payload::{payload, payloads},
};

/// Turns `TaskRunning` into `task_running`, the form of names for programs.
pub(crate) fn snake_case(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    for (place, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && place > 0 {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}
