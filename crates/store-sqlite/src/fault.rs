//! What an error of SQLite means to a caller. The one place where error codes are read.

use std::{fmt, io};

use abide_store::{CommitError, ReadError};
use rusqlite::{Error, ErrorCode, ffi};

/// What a failed statement says about the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The batch is at fault; others are not.
    Refused(CommitError),
    /// The disk is full. Nothing was written and the file is sound; less may fit.
    Full(String),
    /// Nothing was written and the file is sound: a lock held by a stranger, no memory.
    Unavailable(String),
    /// The file system failed, or SQLite did. What is on the disk is not known until the file is opened anew.
    Io(String),
    /// The file is damaged.
    Corrupt(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let text = match error.sqlite_error() {
            Some(sqlite) => format!("{error} (SQLite code {})", sqlite.extended_code),
            None => error.to_string(),
        };
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full(text),
            _ if grows_shared_memory(&error) => Self::Full(text),
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::OutOfMemory
                | ErrorCode::OperationInterrupted
                | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Unavailable(text),
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::InternalMalfunction
                | ErrorCode::ApiMisuse,
            ) => Self::Io(text),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(text),
            Some(_) => Self::Refused(CommitError::Refused(text)),
            None => Self::of_value(&error, text),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(formatter),
            Self::Full(text) | Self::Unavailable(text) | Self::Io(text) | Self::Corrupt(text) => {
                formatter.write_str(text)
            }
        }
    }
}

impl Fault {
    /// A file that SQLite does not write could not be written.
    pub(crate) fn of_file(what: &str, error: &io::Error) -> Self {
        let text = format!("{what}: {error}");
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(text),
            _ => Self::Unavailable(text),
        }
    }

    /// A value that could not be read is damage; one that could not be written is the batch's fault.
    fn of_value(error: &Error, text: String) -> Self {
        match error {
            Error::ToSqlConversionFailure(_) => Self::Refused(CommitError::Refused(text)),
            _ => Self::Corrupt(text),
        }
    }
}

/// What a failed `COMMIT` says. A full disk and a lock are known to come before anything is written that
/// counts; of all else nobody knows how far the commit came.
pub(crate) fn of_commit(error: Error) -> Fault {
    let code = error.sqlite_error_code();
    // The index of the log grows when the commit is in the log already.
    let counts = grows_shared_memory(&error);
    match Fault::from(error) {
        fault @ Fault::Full(_) if !counts => fault,
        fault if code == Some(ErrorCode::DatabaseBusy) => fault,
        Fault::Full(text) | Fault::Unavailable(text) | Fault::Io(text) | Fault::Corrupt(text) => {
            Fault::Io(text)
        }
        Fault::Refused(error) => Fault::Io(error.to_string()),
    }
}

/// There is no room for the index of the log, which SQLite keeps in the `-shm` file.
fn grows_shared_memory(error: &Error) -> bool {
    error.sqlite_extended_error_code() == Some(ffi::SQLITE_IOERR_SHMSIZE)
}

/// Whether a row of that key was there already.
pub(crate) fn of_existing_row(error: &Error) -> bool {
    matches!(
        error.sqlite_extended_error_code(),
        Some(ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_UNIQUE)
    )
}

/// What a reader is told.
pub(crate) fn of_read(error: Error) -> ReadError {
    match Fault::from(error) {
        Fault::Corrupt(text) => ReadError::Corrupt(text),
        Fault::Full(text) | Fault::Unavailable(text) | Fault::Io(text) => {
            ReadError::Unavailable(text)
        }
        Fault::Refused(error) => ReadError::Unavailable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i32) -> Error {
        Error::SqliteFailure(ffi::Error::new(code), None)
    }

    fn name(fault: &Fault) -> &'static str {
        match fault {
            Fault::Refused(_) => "refused",
            Fault::Full(_) => "full",
            Fault::Unavailable(_) => "unavailable",
            Fault::Io(_) => "io",
            Fault::Corrupt(_) => "corrupt",
        }
    }

    /// What a code means in a statement, and what at a commit.
    #[test]
    fn codes() {
        let cases = [
            (ffi::SQLITE_FULL, "full", "full"),
            (ffi::SQLITE_BUSY, "unavailable", "unavailable"),
            (ffi::SQLITE_LOCKED, "unavailable", "io"),
            (ffi::SQLITE_NOMEM, "unavailable", "io"),
            (ffi::SQLITE_INTERRUPT, "unavailable", "io"),
            (ffi::SQLITE_PROTOCOL, "unavailable", "io"),
            (ffi::SQLITE_IOERR_WRITE, "io", "io"),
            (ffi::SQLITE_IOERR_SHMSIZE, "full", "io"),
            (ffi::SQLITE_CANTOPEN, "io", "io"),
            (ffi::SQLITE_READONLY, "io", "io"),
            (ffi::SQLITE_PERM, "io", "io"),
            (ffi::SQLITE_INTERNAL, "io", "io"),
            (ffi::SQLITE_MISUSE, "io", "io"),
            (ffi::SQLITE_CORRUPT, "corrupt", "io"),
            (ffi::SQLITE_NOTADB, "corrupt", "io"),
            (ffi::SQLITE_CONSTRAINT, "refused", "io"),
            (ffi::SQLITE_TOOBIG, "refused", "io"),
        ];
        for (code, statement, commit) in cases {
            assert_eq!(name(&Fault::from(error(code))), statement, "code {code}");
            assert_eq!(name(&of_commit(error(code))), commit, "code {code} at a commit");
        }
    }
}
