//! Prints figures: a small table for people, or one object with the state of the machine at that
//! moment.

use std::fmt;

use abide_command::Table;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value};

use crate::machine;

/// The figures of one measurement.
#[derive(Debug)]
pub(crate) struct Report {
    bench: &'static str,
    /// Description of the measurement, for people.
    what: String,
    figures: Vec<(&'static str, Value)>,
}

impl Report {
    pub(crate) fn new(bench: &'static str, what: impl Into<String>) -> Self {
        Self { bench, what: what.into(), figures: Vec::new() }
    }

    /// Adds a figure, rounded to three decimals, or to a whole number from 100 up.
    pub(crate) fn figure(mut self, name: &'static str, value: f64) -> Self {
        let digits = if value.abs() >= 100.0 { 1.0 } else { 1000.0 };
        self.figures.push((name, ((value * digits).round() / digits).into()));
        self
    }

    pub(crate) fn count(mut self, name: &'static str, count: u64) -> Self {
        self.figures.push((name, count.into()));
        self
    }

    /// Adds a figure that this machine may not provide.
    pub(crate) fn known(self, name: &'static str, value: Option<f64>) -> Self {
        match value {
            Some(value) => self.figure(name, value),
            None => self,
        }
    }

    pub(crate) fn object(&self) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("bench".into(), self.bench.into());
        object.insert("what".into(), self.what.clone().into());
        object.extend(self.figures.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        object.insert("load_average".into(), machine::load_average().into());
        object.insert("cores".into(), machine::cores().into());
        object
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = self.figures.iter().map(|(name, value)| (*name, value.to_string()));
        let table = Table::facts(facts).to_string().replace('\n', "\n  ");
        write!(f, "{}: {}\n  {table}\n", self.bench, self.what)
    }
}

/// Shows the progress of a measurement on a terminal.
pub(crate) fn progress(what: impl Into<String>, length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length).with_message(what.into());
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// The same for work of unknown length.
pub(crate) fn spinner(what: impl Into<String>) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what.into());
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar
}
