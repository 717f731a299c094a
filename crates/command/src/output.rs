//! What a command prints: sentences for people, or JSON for programs, with one object per line.

use std::{
    fmt,
    io::{self, Write as _},
};

use abide_core::visible::{visible, visible_lines};
use serde::Serialize;

use crate::Failed;

/// Writes to standard output, in the requested form.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    json: bool,
}

impl Output {
    pub(crate) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether the output is JSON for programs.
    pub const fn json(self) -> bool {
        self.json
    }

    /// Prints one line for people at once. It may contain text from users, which is escaped and stays
    /// on its line.
    pub fn line(self, text: impl fmt::Display) -> Result<(), Failed> {
        self.write(&visible(&text.to_string()))
    }

    /// The same for a text of several lines. Only failures and reasons from users may be in it as
    /// they are; ids, types and names stay on one line.
    pub fn lines(self, text: impl fmt::Display) -> Result<(), Failed> {
        self.write(&visible_lines(&text.to_string()))
    }

    fn write(self, text: &str) -> Result<(), Failed> {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}")?;
        Ok(out.flush()?)
    }

    /// Prints one object for programs, or these words on one line for people.
    pub fn say(self, object: &impl Serialize, words: impl fmt::Display) -> Result<(), Failed> {
        if self.json { self.object(object) } else { self.line(words) }
    }

    /// The same for words of several lines.
    pub fn say_lines(
        self,
        object: &impl Serialize,
        words: impl fmt::Display,
    ) -> Result<(), Failed> {
        if self.json { self.object(object) } else { self.lines(words) }
    }

    /// Prints a remark beside the output, to standard error: an object for programs, or words of one
    /// or more lines for people.
    pub fn remark(self, object: &impl Serialize, words: impl fmt::Display) -> Result<(), Failed> {
        let text = match self.json {
            true => json_line(object)?,
            false => visible_lines(&words.to_string()),
        };
        Ok(writeln!(io::stderr(), "{text}")?)
    }

    /// Prints one object, on one line.
    pub fn object(self, object: &impl Serialize) -> Result<(), Failed> {
        self.write(&json_line(object)?)
    }
}

fn json_line(object: &impl Serialize) -> Result<String, Failed> {
    serde_json::to_string(object)
        .map_err(|error| Failed::refused(format_args!("cannot write JSON: {error}")))
}
