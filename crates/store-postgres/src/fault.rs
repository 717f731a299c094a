//! Classifies errors of PostgreSQL by what a caller can do. The only place that reads error codes.

use abide_store::{CommitError, ReadError};
use tokio_postgres::{
    Error,
    error::{ErrorPosition, Severity, SqlState},
};
use tokio_rustls::rustls;

use crate::values::Undecodable;

/// Classified failure of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// One batch is at fault; other batches of the group are not.
    Refused(CommitError),
    /// Nothing was written, and a retry on a new connection may succeed soon: the connection was
    /// lost before the commit, the database is starting, or a failover happened.
    Passing(String),
    /// Nothing was written because of a serialization failure or deadlock. An immediate retry may
    /// succeed.
    Conflict(String),
    /// Nothing was written because the disk is full.
    Full(String),
    /// Nothing was written, and a quick retry will not help: a timeout, a missing permission.
    Unavailable(String),
    /// The connection was lost after the commit was sent.
    Unknown(String),
    /// Tables are missing or damaged.
    Corrupt(String),
}

impl From<Error> for Fault {
    /// Classifies an error under the assumption that nothing was committed.
    fn from(error: Error) -> Self {
        let text = text(&error);
        match error.code() {
            Some(code) => Self::of_code(code, text),
            None => Self::without_code(&error, text),
        }
    }
}

impl From<Undecodable> for Fault {
    fn from(undecodable: Undecodable) -> Self {
        Self::Corrupt(undecodable.to_string())
    }
}

impl Fault {
    fn of_code(code: &SqlState, text: String) -> Self {
        match class(code) {
            // Integrity, data and size errors: the database cannot store what was sent.
            "22" | "23" | "54" => Self::Refused(CommitError::Refused(text)),
            // Serialization failures and deadlocks.
            "40" => Self::Conflict(text),
            "08" => Self::Passing(text),
            _ => match *code {
                SqlState::READ_ONLY_SQL_TRANSACTION
                | SqlState::TOO_MANY_CONNECTIONS
                | SqlState::ADMIN_SHUTDOWN
                | SqlState::CRASH_SHUTDOWN
                | SqlState::CANNOT_CONNECT_NOW
                | SqlState::IDLE_SESSION_TIMEOUT
                | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
                | SqlState::IN_FAILED_SQL_TRANSACTION
                // A prepared statement no longer fits the tables, or is gone; a new connection
                // prepares it again.
                | SqlState::FEATURE_NOT_SUPPORTED
                | SqlState::INVALID_SQL_STATEMENT_NAME => Self::Passing(text),
                SqlState::UNDEFINED_TABLE
                | SqlState::UNDEFINED_COLUMN
                | SqlState::DATATYPE_MISMATCH
                | SqlState::UNDEFINED_FUNCTION
                | SqlState::INVALID_COLUMN_REFERENCE
                | SqlState::WRONG_OBJECT_TYPE
                | SqlState::DATA_CORRUPTED
                | SqlState::INDEX_CORRUPTED => Self::Corrupt(text),
                SqlState::DISK_FULL => Self::Full(text),
                _ => Self::Unavailable(text),
            },
        }
    }

    /// Errors of the client library: the connection is gone, a value could not be encoded, or TLS
    /// failed, which a retry does not fix.
    fn without_code(error: &Error, text: String) -> Self {
        let source = std::error::Error::source(error);
        let io = source.and_then(|source| source.downcast_ref::<std::io::Error>());
        let refused_by_tls =
            io.and_then(std::io::Error::get_ref).is_some_and(|inner| inner.is::<rustls::Error>());
        if error.is_closed() || source.is_none() || (io.is_some() && !refused_by_tls) {
            Self::Passing(text)
        } else {
            Self::Unavailable(text)
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Refused(error) => error.to_string(),
            Self::Passing(text)
            | Self::Conflict(text)
            | Self::Full(text)
            | Self::Unavailable(text)
            | Self::Unknown(text)
            | Self::Corrupt(text) => text.clone(),
        }
    }

    pub(crate) fn for_reader(self) -> ReadError {
        match self {
            Self::Corrupt(text) => ReadError::Corrupt(text),
            Self::Passing(text)
            | Self::Conflict(text)
            | Self::Full(text)
            | Self::Unavailable(text)
            | Self::Unknown(text) => ReadError::Unavailable(text),
            Self::Refused(error) => ReadError::Unavailable(error.to_string()),
        }
    }

    pub(crate) fn for_writer(self) -> CommitError {
        match self {
            Self::Refused(error) => error,
            Self::Passing(text) | Self::Conflict(text) | Self::Unavailable(text) => {
                CommitError::Unavailable(text)
            }
            Self::Full(text) => CommitError::Full(text),
            Self::Unknown(text) => CommitError::Unknown(text),
            Self::Corrupt(text) => CommitError::Stopped(text),
        }
    }
}

/// Classifies an error from a statement before the commit that arrives after the commit was sent.
/// The database then rolls the transaction back, provided it is still running.
pub(crate) fn before_commit(error: Error) -> Fault {
    let told = error.as_db_error().is_some_and(|error| {
        error.parsed_severity().is_some_and(|severity| severity == Severity::Error)
    });
    if told { Fault::from(error) } else { Fault::Unknown(text(&error)) }
}

/// Classifies an error of a statement that is a transaction by itself.
pub(crate) fn of_lone_statement(error: Error) -> Fault {
    if error.code() == Some(&SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN) {
        return Fault::Unknown(text(&error));
    }
    before_commit(error)
}

/// Classifies an error in response to the commit itself.
pub(crate) fn of_commit(error: Error) -> Fault {
    if error.code().is_some_and(proves_rollback) {
        before_commit(error)
    } else {
        Fault::Unknown(text(&error))
    }
}

/// Whether this error code proves that a commit wrote nothing. Few codes do.
fn proves_rollback(code: &SqlState) -> bool {
    class(code) == "23"
        || [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code)
}

/// A commit that the database acknowledged before its synchronous standby had it.
pub(crate) fn unreplicated_commit() -> Fault {
    let text = "the database does not wait for its standby: the commit may be lost in a failover";
    Fault::Unknown(text.to_owned())
}

/// Whether another node created the same object at the same time.
pub(crate) fn is_duplicate_object(error: &Error) -> bool {
    let known = [
        SqlState::UNIQUE_VIOLATION,
        SqlState::DUPLICATE_TABLE,
        SqlState::DUPLICATE_SCHEMA,
        SqlState::DUPLICATE_OBJECT,
    ];
    error.code().is_some_and(|code| known.contains(code))
}

/// The first two characters of an error code.
fn class(code: &SqlState) -> &str {
    code.code().get(..2).unwrap_or_default()
}

/// Message and code of the error.
fn text(error: &Error) -> String {
    match error.as_db_error() {
        Some(told) => {
            let place = match told.position() {
                Some(ErrorPosition::Original(at)) => format!(" at character {at}"),
                _ => String::new(),
            };
            format!("{}{place} (PostgreSQL code {})", told.message(), told.code().code())
        }
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: fn(String) -> Fault, codes: &[&str]) {
        for code in codes {
            let fault = Fault::of_code(&SqlState::from_code(code), (*code).to_owned());
            assert_eq!(fault, expected((*code).to_owned()), "{code}");
        }
    }

    #[test]
    fn every_code_says_what_a_caller_can_do() {
        let refused = |text| Fault::Refused(CommitError::Refused(text));
        check(refused, &["22001", "22021", "23502", "23505", "23514", "54000"]);
        check(Fault::Conflict, &["40001", "40P01", "40003"]);
        let lost = ["08000", "08003", "08006", "08P01"];
        let ended = ["57P01", "57P02", "57P03", "57P05", "25P03"];
        let elsewhere = ["25006", "53300", "25P02", "26000", "0A000"];
        check(Fault::Passing, &[lost.as_slice(), &ended, &elsewhere].concat());
        check(Fault::Full, &["53100"]);
        let no_room = ["53000", "53200", "53400"];
        let too_slow = ["57014", "55P03"];
        let not_allowed = ["42501", "28000", "28P01", "3D000", "57P04"];
        let broken = ["58030", "XX000"];
        check(Fault::Unavailable, &[no_room.as_slice(), &too_slow, &not_allowed, &broken].concat());
        check(Fault::Corrupt, &["42P01", "42703", "42883", "42804", "42P10", "42809"]);
        check(Fault::Corrupt, &["XX001", "XX002"]);
    }

    #[test]
    fn of_a_commit_only_conflicts_are_known_to_have_written_nothing() {
        let known = |code: &str| proves_rollback(&SqlState::from_code(code));
        for code in ["23505", "40001", "40P01"] {
            assert!(known(code), "{code}");
        }
        for code in ["08006", "40003", "53100", "57014", "57P01", "58030", "XX000"] {
            assert!(!known(code), "{code}");
        }
    }

    #[test]
    fn callers_are_told_whether_something_may_be_written() {
        let text = || "text".to_owned();
        let unavailable = CommitError::Unavailable(text());
        for fault in [Fault::Passing(text()), Fault::Conflict(text()), Fault::Unavailable(text())] {
            assert_eq!(fault.clone().for_writer(), unavailable);
            assert_eq!(fault.for_reader(), ReadError::Unavailable(text()));
        }
        assert_eq!(Fault::Full(text()).for_writer(), CommitError::Full(text()));
        assert_eq!(Fault::Full(text()).for_reader(), ReadError::Unavailable(text()));
        assert_eq!(Fault::Unknown(text()).for_writer(), CommitError::Unknown(text()));
        assert_eq!(Fault::Corrupt(text()).for_writer(), CommitError::Stopped(text()));
        assert_eq!(Fault::Corrupt(text()).for_reader(), ReadError::Corrupt(text()));
    }
}
