//! The outcome of a scenario: figures, or what went wrong.

use std::fmt;

use abide_postgres_fixture::in_ci;

/// Figures that were measured while the server withstood the scenario.
#[derive(Debug, Default)]
pub struct Report(Vec<(&'static str, String)>);

impl Report {
    /// Adds one figure to the report.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.0.push((name, value.to_string()));
        self
    }

    /// Says which part of the scenario cannot be played on this machine. In CI that is a finding.
    pub fn skipping(self, part: &str, why: impl fmt::Display) -> Result<Self, Finding> {
        let skipped = format!("{part}: {why}");
        Finding::unless(!in_ci(), || format!("CI must not skip {skipped}"))?;
        Ok(self.with("SKIPPED", skipped))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures: Vec<_> =
            self.0.iter().map(|(name, value)| format!("{name} {value}")).collect();
        f.write_str(&figures.join(", "))
    }
}

/// Something that hostile input must not be able to do. It is not an error type itself, so that `?`
/// can convert every error into one.
#[derive(Debug)]
pub struct Finding(String);

impl Finding {
    /// A finding with this description.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// Fails with a finding unless the condition holds.
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
    /// An amount in millions of bytes.
    pub const fn mb(mb: u64) -> Self {
        Self(mb * 1_000_000)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MB", self.0 / 1_000_000)
    }
}
