//! What a scenario ends with: figures, or what went wrong.

use std::fmt;

/// What was measured while the server held.
#[derive(Debug, Default)]
pub struct Report(Vec<(&'static str, String)>);

impl Report {
    /// The report with one more figure.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.0.push((name, value.to_string()));
        self
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures: Vec<_> =
            self.0.iter().map(|(name, value)| format!("{name} {value}")).collect();
        f.write_str(&figures.join(", "))
    }
}

/// Something that hostile input must not be able to do. It is no error type itself, so that every error
/// becomes one by `?`.
#[derive(Debug)]
pub struct Finding(String);

impl Finding {
    /// A finding, in words.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// A finding unless the condition holds.
    pub fn unless(holds: bool, what: impl FnOnce() -> String) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self(what())) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Finding {
    fn from(error: E) -> Self {
        let causes = std::iter::successors(error.source(), |error| error.source());
        let causes: String = causes.map(|cause| format!(": {cause}")).collect();
        Self(format!("{error}{causes}"))
    }
}

/// An amount of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl Bytes {
    /// So many million bytes.
    pub const fn mb(mb: u64) -> Self {
        Self(mb * 1_000_000)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MB", self.0 / 1_000_000)
    }
}
