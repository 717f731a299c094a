//! Why a command failed: one line that says what, one that says what to do, and an exit code that a
//! script can act on.

use std::{fmt, io, process::ExitCode};

use abide::{ClientError, Failure, client::RefusalKind};
use abide_core::{operation::CallError, visible::visible_lines};
use serde_json::json;

use crate::quoted;

/// The exit codes for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// The engine refused, or the requested operation failed.
    Refused = 1,
    /// The command line, an input or the configuration is invalid.
    Usage = 2,
    /// The engine is unreachable.
    Unreachable = 3,
}

/// Why a command failed.
#[derive(Debug)]
pub struct Failed {
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
    pub fn refused(what: impl fmt::Display) -> Self {
        Self::new(Exit::Refused, what)
    }

    /// The command line, an input or the configuration is invalid.
    pub fn usage(what: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// The engine is unreachable.
    pub fn unreachable(what: impl fmt::Display) -> Self {
        Self::new(Exit::Unreachable, what)
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Prefixes the message with what succeeded.
    pub fn after(mut self, done: &str) -> Self {
        self.what.insert_str(0, done);
        self
    }

    /// Prints the error, and returns the exit code.
    pub fn report(&self, json: bool) -> ExitCode {
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
        Self { pipe_closed, ..Self::refused(format_args!("cannot write the output: {error}")) }
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
    pub fn about(id: &str, error: ClientError) -> Self {
        let failed = match &error {
            ClientError::Invalid { .. } | ClientError::Payload(_) => return Self::usage(error),
            ClientError::Unavailable(why) => return Self::unavailable(why),
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

impl Failed {
    /// Why no call was answered: the engine refuses for now, or it cannot be reached.
    fn unavailable(why: &str) -> Self {
        let tried = why.strip_prefix("no answer within ").and_then(|rest| rest.split_once(": "));
        let last = tried.map_or(why, |(_, last)| last);
        if said_by_engine(last) {
            return Self::refused(format_args!("the engine refuses changes for now: {last}")).hint(
                "GET /readyz on the server's HTTP port shows the cause; retry when it is gone",
            );
        }
        let what = Self::unreachable(ClientError::Unavailable(why.to_owned()));
        what.hint(tls_hint(why).unwrap_or(
            "check the engine's log, or retry; a server that closes connections immediately may require \
             https or a client certificate",
        ))
    }
}

/// Whether the engine itself gave this reason. Its store does not accept writes, or it is busy.
fn said_by_engine(why: &str) -> bool {
    let store = ["the disk of the store is full: ", "store unavailable: "];
    let busy = [CallError::Overloaded, CallError::NotServed, CallError::Reset];
    // With several servers the address precedes the reason.
    store.iter().any(|said| why.contains(said))
        || busy.iter().any(|said| why.ends_with(&said.to_string()))
}

/// What to do if the connection failed because of TLS.
pub(crate) fn tls_hint(why: &str) -> Option<&'static str> {
    if why.contains("InvalidContentType") {
        return Some("the server does not use TLS: write its address with http");
    }
    let alert = why.contains("received fatal alert");
    if why.contains("invalid peer certificate") {
        return Some(
            "set --tls-ca to the CA certificate that signed the server's certificate, and --tls-domain to \
             the name in it if that is not the host of the address",
        );
    }
    alert.then_some(
        "the server requires a client certificate that its CA signed: set --tls-client-certificate and \
         --tls-client-key",
    )
}

/// The causes of a failure, on one line.
fn causes(failure: &Failure) -> String {
    failure.causes().iter().map(|cause| format!(", because: {cause}")).collect()
}

/// What the user can do about it.
fn hint(error: &ClientError, id: &str) -> Option<String> {
    let id = quoted(id);
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
            return Some(format!("`abide workflow history {id}` shows what happened"));
        }
        ClientError::NotFound => "`abide workflow list` shows the existing ones",
        ClientError::AlreadyExists { .. } => "choose another --id, or set --on-conflict or --reuse",
        ClientError::Refused(refusal) => return refusal_hint(refusal.kind(), &id),
        ClientError::UpdateAborted { .. } => {
            return Some(format!("`abide workflow result {id}` shows the outcome of the run"));
        }
        _ => return None,
    };
    Some(hint.into())
}

/// What the user can do about a run that refuses a request.
fn refusal_hint(kind: RefusalKind, id: &str) -> Option<String> {
    let hint = match kind {
        RefusalKind::RunClosed => "`abide workflow list --status running` shows the open ones",
        RefusalKind::KeyReused => {
            "a retry must repeat the type or name and the input, for a start also the first signal, for a \
             reschedule the timer and the time; use a new key, or a new update id, for a new request"
        }
        RefusalKind::UnknownUpdate => {
            "a rejected update is not recorded; an update id is valid in the current run and in earlier \
             runs that continued as new"
        }
        RefusalKind::UnknownActivity | RefusalKind::NoAttempt => {
            return Some(format!("`abide workflow describe {id}` shows its activities"));
        }
        RefusalKind::NotBegun => {
            return Some(format!("`abide workflow describe {id}` shows when it begins"));
        }
        RefusalKind::ScheduleRevised => "`abide schedule describe` shows it as it is now",
        RefusalKind::StaleAttempt => {
            "the attempt was reported before or timed out; each attempt has its own token"
        }
        RefusalKind::CancelNotRequested => "to report a failure, use `abide activity fail`",
        RefusalKind::UnknownTimer | RefusalKind::UnknownWait | RefusalKind::TimerFired => {
            "`abide waits list` shows the open ones"
        }
        RefusalKind::RunOpen => "add --terminate to end it first",
        RefusalKind::NoSuchTask | RefusalKind::Unanswered => {
            return Some(format!("`abide workflow history {id}` shows the tasks of the run"));
        }
        _ => return None,
    };
    Some(hint.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_refuses_for_now_is_not_unreachable() {
        let check = |why: &str, exit: Exit, said: &str, hint: &str| {
            let failed = Failed::from(ClientError::Unavailable(why.to_owned()));
            assert_eq!(failed.exit, exit, "{failed}");
            assert!(failed.what.contains(said), "{failed}");
            assert!(failed.hint.as_ref().is_some_and(|given| given.contains(hint)), "{failed}");
        };
        let full = "the disk of the store is full: database or disk is full";
        let said = format!("the engine refuses changes for now: {full}");
        check(&format!("no answer within 10s: {full}"), Exit::Refused, &said, "/readyz");
        check(full, Exit::Refused, &said, "/readyz");
        let busy = CallError::Overloaded.to_string();
        check(&format!("no answer within 10s: {busy}"), Exit::Refused, &busy, "/readyz");
        let lost = "no answer within 10s: connection refused";
        check(lost, Exit::Unreachable, lost, "check the engine's log");
        let distrusted = "no answer within 10s: invalid peer certificate: UnknownIssuer";
        check(distrusted, Exit::Unreachable, distrusted, "--tls-ca");
        let nameless = "no answer within 10s: received fatal alert: CertificateRequired";
        check(nameless, Exit::Unreachable, nameless, "--tls-client-certificate");
    }
}
