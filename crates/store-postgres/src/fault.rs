//! What an error of PostgreSQL means to a caller. The one place where error codes are read.

use abide_store::{CommitError, ReadError};
use tokio_postgres::{
    Error,
    error::{ErrorPosition, Severity, SqlState},
};

use crate::values::Strange;

/// What a failed statement says about the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A batch is at fault; others are not.
    Refused(CommitError),
    /// Nothing was written, and the same may succeed in a moment on a new connection: this one was lost
    /// before the commit, the database starts, or another one took over from it.
    Passing(String),
    /// Nothing was written because transactions met. The same may succeed at once.
    Met(String),
    /// Nothing was written, and waiting a moment will not help: no room, too slow, no permission.
    Unavailable(String),
    /// The connection was lost after the commit was sent.
    Unknown(String),
    /// Tables are missing or damaged.
    Corrupt(String),
}

impl From<Error> for Fault {
    /// What the error says if nothing was committed.
    fn from(error: Error) -> Self {
        let text = text(&error);
        let Some(code) = error.code() else { return Self::without_code(&error, text) };
        match class(code) {
            // Integrity, data, sizes: what was sent cannot be stored.
            "22" | "23" | "54" => Self::Refused(CommitError::Refused(text)),
            // Serialization failures and deadlocks.
            "40" => Self::Met(text),
            "08" => Self::Passing(text),
            _ => match *code {
                SqlState::READ_ONLY_SQL_TRANSACTION
                | SqlState::TOO_MANY_CONNECTIONS
                | SqlState::ADMIN_SHUTDOWN
                | SqlState::CRASH_SHUTDOWN
                | SqlState::CANNOT_CONNECT_NOW
                | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
                | SqlState::IN_FAILED_SQL_TRANSACTION => Self::Passing(text),
                SqlState::UNDEFINED_TABLE
                | SqlState::UNDEFINED_COLUMN
                | SqlState::DATATYPE_MISMATCH
                | SqlState::UNDEFINED_FUNCTION
                | SqlState::INVALID_COLUMN_REFERENCE
                | SqlState::WRONG_OBJECT_TYPE
                | SqlState::DATA_CORRUPTED
                | SqlState::INDEX_CORRUPTED => Self::Corrupt(text),
                _ => Self::Unavailable(text),
            },
        }
    }
}

impl From<Strange> for Fault {
    fn from(strange: Strange) -> Self {
        Self::Corrupt(strange.to_string())
    }
}

impl Fault {
    /// Errors of the client: the connection is gone, or a value could not be sent.
    fn without_code(error: &Error, text: String) -> Self {
        let source = std::error::Error::source(error);
        let io = source.is_some_and(|source| source.is::<std::io::Error>());
        if error.is_closed() || io || source.is_none() {
            Self::Passing(text)
        } else {
            Self::Unavailable(text)
        }
    }

    /// What a reader is told.
    pub(crate) fn for_reader(self) -> ReadError {
        match self {
            Self::Corrupt(text) => ReadError::Corrupt(text),
            Self::Passing(text)
            | Self::Met(text)
            | Self::Unavailable(text)
            | Self::Unknown(text) => ReadError::Unavailable(text),
            Self::Refused(error) => ReadError::Unavailable(error.to_string()),
        }
    }

    /// What a writer is told.
    pub(crate) fn for_writer(self) -> CommitError {
        match self {
            Self::Refused(error) => error,
            Self::Passing(text) | Self::Met(text) | Self::Unavailable(text) => {
                CommitError::Unavailable(text)
            }
            Self::Unknown(text) => CommitError::Unknown(text),
            Self::Corrupt(text) => CommitError::Stopped(text),
        }
    }
}

/// What an error says that came after the commit was sent, in answer to a statement before it. The
/// database then ends the transaction without effect, if it lives to tell.
pub(crate) fn before_commit(error: Error) -> Fault {
    let told = error.as_db_error().is_some_and(|error| {
        error.parsed_severity().is_some_and(|severity| severity == Severity::Error)
    });
    if told { Fault::from(error) } else { Fault::Unknown(text(&error)) }
}

/// What an error in answer to the commit itself says. Of few it is known that nothing was written.
pub(crate) fn of_commit(error: Error) -> Fault {
    let undone = error.code().is_some_and(|code| {
        class(code) == "23"
            || [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code)
    });
    if undone { before_commit(error) } else { Fault::Unknown(text(&error)) }
}

/// Whether someone else made the same thing at the same time.
pub(crate) fn of_existing_thing(error: &Error) -> bool {
    let known = [
        SqlState::UNIQUE_VIOLATION,
        SqlState::DUPLICATE_TABLE,
        SqlState::DUPLICATE_SCHEMA,
        SqlState::DUPLICATE_OBJECT,
    ];
    error.code().is_some_and(|code| known.contains(code))
}

/// The first two characters of a code.
fn class(code: &SqlState) -> &str {
    code.code().get(..2).unwrap_or_default()
}

/// The error in words, with its code.
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
