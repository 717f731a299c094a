//! What whoever runs the worker must hear of. It goes to the log; without one it goes to standard
//! error, because a workflow that never ends and says nothing is the worst of all.

use std::{fmt, io::Write as _};

use abide_core::ids::WorkflowKey;

/// Says what went wrong with a workflow.
pub(super) fn warn(workflow: &WorkflowKey, what: fmt::Arguments<'_>) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!(%workflow, "{what}");
        return;
    }
    // Nobody can be told that nobody can be told.
    let _ = writeln!(std::io::stderr(), "abide: workflow {workflow}: {what}");
}
