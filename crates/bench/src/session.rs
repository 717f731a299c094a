//! State that the measurements of one run share.

use std::time::Duration;

use abide_command::{Common, Failed, Output};
use tempfile::TempDir;

use crate::{aims::Figures, report::Report};

/// The options and figures of one run.
pub(crate) struct Session<'a> {
    pub(crate) common: &'a Common,
    pub(crate) output: Output,
    /// Temporary directory, removed at the end.
    pub(crate) directory: TempDir,
    /// How long each rate is measured.
    pub(crate) time: Duration,
    pub(crate) figures: Figures,
}

impl Session<'_> {
    /// Whether the measured engine is of this program, on the disk where the store was measured.
    /// Aims mean nothing for other engines.
    pub(crate) const fn measures_itself(&self) -> bool {
        self.common.address.is_none()
    }

    pub(crate) fn report(&self, report: &Report) -> Result<(), Failed> {
        self.output.say_lines(&report.object(), report)
    }
}
