//! Warnings for people who run workers and clients. They go to the log, or to standard error if no log
//! is set up: a workflow that silently never ends is the hardest problem to find.

use std::{fmt, io::Write as _};

use abide_core::{
    ids::WorkflowKey,
    visible::{visible, visible_lines},
};

/// Logs a problem with a workflow.
pub(super) fn warn(workflow: &WorkflowKey, what: fmt::Arguments<'_>) {
    let (workflow, what) = (shown(workflow), indented(what));
    tracing::warn!(%workflow, "{what}");
    without_log(format_args!("workflow {workflow}: {what}"));
}

/// Says what was logged on standard error too, if no log is set up.
pub(crate) fn without_log(what: fmt::Arguments<'_>) {
    if !tracing::dispatcher::has_been_set() {
        // A failed write to standard error is dropped: there is no other place to report it.
        let _ = writeln!(std::io::stderr(), "abide: {what}");
    }
}

/// Logs something expected about a workflow.
pub(super) fn info(workflow: &WorkflowKey, what: fmt::Arguments<'_>) {
    tracing::info!(workflow = %shown(workflow), "{}", indented(what));
}

/// Logs what a developer may want to know about a workflow.
pub(super) fn debug(workflow: &WorkflowKey, what: fmt::Arguments<'_>) {
    tracing::debug!(workflow = %shown(workflow), "{}", indented(what));
}

/// The workflow as it is logged: whoever starts workflows chooses their ids.
pub(crate) fn shown(workflow: &WorkflowKey) -> String {
    visible(&workflow.to_string())
}

/// A message may have several lines, but none that passes for a line of the log.
fn indented(what: fmt::Arguments<'_>) -> String {
    visible_lines(&what.to_string()).replace('\n', "\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_ids_nor_messages_forge_lines_of_the_log() {
        let workflow =
            WorkflowKey { namespace: "default".into(), workflow: "a\nWARN \u{1b}[2Jforged".into() };
        assert_eq!(shown(&workflow), "default/a\\nWARN \\u{1b}[2Jforged");
        let message = "it failed\nWARN \u{1b}[2Jforged";
        assert_eq!(indented(format_args!("{message}")), "it failed\n    WARN \\u{1b}[2Jforged");
    }
}
