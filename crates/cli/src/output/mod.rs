//! Output for people and programs: tables and sentences, or JSON with one object per line.

mod blocked;
mod event;
mod failure;
mod payload;
mod table;
mod time;
mod visible;

use std::{
    fmt,
    io::{self, Write as _},
};

use serde::Serialize;

pub(crate) use self::{
    blocked::{blocked, blocked_lines},
    event::{condition, fields, mover, origin},
    failure::{failure, failure_lines},
    payload::{payload, payloads},
    table::Table,
    time::{absolute, ago, moment, parse_length, parse_moment, relative, system_now},
    visible::{visible, visible_lines},
};
use crate::failed::Failed;

/// Writes to standard output, in the requested form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether the output is JSON for programs.
    pub(crate) const fn json(self) -> bool {
        self.json
    }

    /// Prints words for people at once. They may contain text from users, which is escaped.
    pub(crate) fn line(self, text: impl fmt::Display) -> Result<(), Failed> {
        self.write(&visible_lines(&text.to_string()))
    }

    fn write(self, text: &str) -> Result<(), Failed> {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}")?;
        Ok(out.flush()?)
    }

    /// Prints one object for programs, or these words for people.
    pub(crate) fn say(
        self,
        object: &impl Serialize,
        words: impl fmt::Display,
    ) -> Result<(), Failed> {
        if self.json { self.object(object) } else { self.line(words) }
    }

    /// Prints one object, on one line.
    pub(crate) fn object(self, object: &impl Serialize) -> Result<(), Failed> {
        let text = serde_json::to_string(object)
            .map_err(|error| Failed::refused(format_args!("JSON cannot be written: {error}")))?;
        self.write(&text)
    }
}

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
