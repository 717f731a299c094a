//! Warnings for the operator of the worker. They go to the log, or to standard error if no log is
//! set up: a workflow that silently never ends is the hardest problem to find.

use std::{fmt, io::Write as _};

use abide_core::ids::WorkflowKey;

/// Logs a problem with a workflow.
pub(super) fn warn(workflow: &WorkflowKey, what: fmt::Arguments<'_>) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!(%workflow, "{what}");
        return;
    }
    // A failed write to standard error is dropped: there is no other place to report it.
    let _ = writeln!(std::io::stderr(), "abide: workflow {workflow}: {what}");
}
