//! Why a command failed: one line that says what, one that says what to do, and an exit code that a
//! script can act on.

use std::{fmt, io, process::ExitCode};

use abide::{Failure, client::ClientError};
use abide_core::run::Refusal;
use serde_json::json;

use crate::output::visible_lines;

/// The exit codes for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The engine refused, or the requested operation failed.
    Refused = 1,
    /// The command line, an input or a configuration is wrong.
    Usage = 2,
    /// The engine cannot be reached.
    Unreachable = 3,
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failed {
    what: String,
    hint: Option<String>,
    exit: Exit,
    /// The reader of the output has closed the pipe, which is its choice and not an error.
    pipe_closed: bool,
}

impl Failed {
    fn new(exit: Exit, what: impl fmt::Display) -> Self {
        Self { what: what.to_string(), hint: None, exit, pipe_closed: false }
    }

    /// The engine refused, or the requested operation failed.
    pub(crate) fn refused(what: impl fmt::Display) -> Self {
        Self::new(Exit::Refused, what)
    }

    /// The command line, an input or a configuration is wrong.
    pub(crate) fn usage(what: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// The engine cannot be reached.
    pub(crate) fn unreachable(what: impl fmt::Display) -> Self {
        Self::new(Exit::Unreachable, what)
    }

    /// Adds what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Prefixes the message with what succeeded.
    pub(crate) fn after(mut self, done: &str) -> Self {
        self.what.insert_str(0, done);
        self
    }

    /// Prints the error, and returns the exit code.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        if self.pipe_closed {
            return ExitCode::SUCCESS;
        }
        let text = if json {
            json!({ "error": self.what, "hint": self.hint, "exit_code": self.exit as u8 })
                .to_string()
        } else {
            visible_lines(&self.to_string())
        };
        // If standard error is closed, the message is dropped.
        let _ = io::Write::write_all(&mut io::stderr(), format!("{text}\n").as_bytes());
        ExitCode::from(self.exit as u8)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Output that cannot be written.
impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        let pipe_closed = error.kind() == io::ErrorKind::BrokenPipe;
        Self { pipe_closed, ..Self::refused(format_args!("the output cannot be written: {error}")) }
    }
}

/// An error that is not about a particular workflow.
impl From<ClientError> for Failed {
    fn from(error: ClientError) -> Self {
        Self::about("ID", error)
    }
}

/// A wrong command line: clap's first line is what went wrong, its next is the hint.
impl From<clap::Error> for Failed {
    fn from(error: clap::Error) -> Self {
        let said = error.render().to_string();
        let mut parts = said.split("\n\n").map(one_line);
        let what = parts.next().unwrap_or_default();
        let hints: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
        Self::usage(what.trim_start_matches("error: ")).hint(hints.join("; "))
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Failed {
    /// Why an operation on the workflow with this id failed.
    pub(crate) fn about(id: &str, error: ClientError) -> Self {
        let failed = match &error {
            ClientError::Invalid(_) | ClientError::Payload(_) => return Self::usage(error),
            ClientError::Unavailable(_) => Self::unreachable(&error),
            ClientError::QueryFailed(failure)
            | ClientError::UpdateRejected(failure)
            | ClientError::UpdateFailed(failure)
            | ClientError::RunFailed(failure) => {
                Self::refused(format_args!("{error}{}", causes(failure)))
            }
            ClientError::RunTerminated(reason) if reason.is_empty() => {
                Self::refused("the run was terminated")
            }
            _ => Self::refused(&error),
        };
        match hint(&error, id) {
            Some(hint) => failed.hint(hint),
            None => failed,
        }
    }
}

/// The causes of a failure, on one line.
fn causes(failure: &Failure) -> String {
    failure.causes.iter().map(|cause| format!(", because: {}", cause.message)).collect()
}

/// What the user can do about it.
fn hint(error: &ClientError, id: &str) -> Option<String> {
    let hint = match error {
        ClientError::Blocked(_) => {
            return Some(format!(
                "deploy code that fits the history, then `abide repair {id}`; \
                 `abide workflow describe {id}` shows the difference"
            ));
        }
        ClientError::RunFailed(_)
        | ClientError::RunCancelled(_)
        | ClientError::RunTerminated(_)
        | ClientError::RunTimedOut => {
            return Some(format!("`abide workflow history {id}` shows how it came to that"));
        }
        ClientError::Unavailable(_) => {
            "look at the engine's own output, or try again; a server that closes connections at once may \
             want https, or a certificate of your own"
        }
        ClientError::NotFound => "see which there are with `abide workflow list`",
        ClientError::AlreadyExists { .. } => {
            "choose another --id, or say what to do with --on-conflict or --reuse"
        }
        ClientError::Refused(Refusal::RunClosed) => {
            "`abide workflow list --status running` shows the open ones"
        }
        ClientError::Refused(Refusal::KeyReused(_)) => {
            "a repeat is the same in every part; use another key, or another update id, for anything else"
        }
        ClientError::Refused(Refusal::UnknownUpdate(_)) => {
            "a rejected update leaves no trace; an id belongs to the current run and those before it \
             that continued as new"
        }
        ClientError::UpdateAborted { .. } => {
            return Some(format!("`abide workflow result {id}` shows what came of the run"));
        }
        ClientError::Refused(Refusal::UnknownActivity(_) | Refusal::NoAttempt(_)) => {
            return Some(format!("`abide workflow describe {id}` shows its activities"));
        }
        ClientError::Refused(Refusal::StaleAttempt) => {
            "somebody reported before, or its time was up; each attempt has a token of its own"
        }
        ClientError::Refused(Refusal::CancelNotRequested) => {
            "`abide activity fail` says that it did not succeed"
        }
        ClientError::Refused(
            Refusal::UnknownTimer(_) | Refusal::UnknownWait(_) | Refusal::TimerFired(_),
        ) => "`abide waits list` shows the open ones",
        _ => return None,
    };
    Some(hint.into())
}
