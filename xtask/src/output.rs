//! The only place that prints. Lines are flushed immediately, because the commands that the chores
//! start write to the same terminal.

use std::io::Write;

use crate::problem::Problem;

/// Prints one line of progress.
pub(crate) fn line(text: &str) {
    // Errors are ignored: without a terminal there is nowhere to report them.
    let _ = writeln!(std::io::stdout(), "{text}");
    let _ = std::io::stdout().flush();
}

/// Prints what went wrong.
pub(crate) fn problems(problems: &[Problem]) {
    for problem in problems {
        let _ = writeln!(std::io::stderr(), "error: {problem}");
    }
}
