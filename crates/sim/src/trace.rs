//! Readable record of what happened, kept only when a seed is repeated for people.

use std::fmt;

use abide_core::ids::RunId;

/// Lines in order, each with the run that it is about.
#[derive(Debug, Default)]
pub struct Trace {
    on: bool,
    lines: Vec<(Option<RunId>, String)>,
}

impl Trace {
    pub const fn new(on: bool) -> Self {
        Self { on, lines: Vec::new() }
    }

    pub fn note(&mut self, run: Option<RunId>, line: impl FnOnce() -> String) {
        if self.on {
            let line = line();
            self.lines.push((run, line));
        }
    }

    pub const fn on(&self) -> bool {
        self.on
    }

    /// Lines about the run, or all of them.
    pub fn of(&self, run: Option<RunId>) -> Vec<String> {
        let concerned = |line: &&(Option<RunId>, String)| run.is_none() || line.0 == run;
        self.lines.iter().filter(concerned).map(|(_, line)| line.clone()).collect()
    }
}

/// A value on one line of bounded length.
pub fn brief(value: &impl fmt::Debug) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
