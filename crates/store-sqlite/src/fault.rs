//! Translates errors of SQLite for callers. The only place that reads error codes.

use std::{fmt, io};

use abide_store::{CommitError, ReadError};
use rusqlite::{Error, ErrorCode, ffi};

/// What a failed statement says about the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The batch is at fault; other batches are not affected.
    Refused(CommitError),
    /// The disk is full. Nothing was written and the file is sound; a smaller batch may fit.
    Full(String),
    /// Nothing was written and the file is sound: another program holds a lock, or memory ran out.
    Unavailable(String),
    /// The file system or SQLite failed. The content of the disk is unknown until the file is
    /// reopened.
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
    /// The fault when a file that SQLite does not manage cannot be written.
    pub(crate) fn of_file(what: &str, error: &io::Error) -> Self {
        let text = format!("{what}: {error}");
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(text),
            _ => Self::Unavailable(text),
        }
    }

    /// A value that cannot be read means damage; one that cannot be written is the batch's fault.
    fn of_value(error: &Error, text: String) -> Self {
        match error {
            Error::ToSqlConversionFailure(_) => Self::Refused(CommitError::Refused(text)),
            _ => Self::Corrupt(text),
        }
    }
}

/// The fault of a failed `COMMIT`. A full disk and a lock are known to fail before anything durable
/// is written; after any other error it is unknown whether the commit took effect.
pub(crate) fn of_commit(error: Error) -> Fault {
    let code = error.sqlite_error_code();
    // SQLite grows the index of the log after the commit is in the log.
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

/// Whether there is no room for the index of the log, which SQLite keeps in the `-shm` file.
fn grows_shared_memory(error: &Error) -> bool {
    error.sqlite_extended_error_code() == Some(ffi::SQLITE_IOERR_SHMSIZE)
}

/// Whether a row with this key already existed.
pub(crate) fn of_existing_row(error: &Error) -> bool {
    matches!(
        error.sqlite_extended_error_code(),
        Some(ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_UNIQUE)
    )
}

/// The error for the caller of a read.
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

    /// The meaning of each code in a statement, and at a commit.
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
