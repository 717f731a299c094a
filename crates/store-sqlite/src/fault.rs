//! What an error of SQLite means to a caller. The one place where error codes are read.

use abide_store::{CommitError, ReadError};
use rusqlite::{Error, ErrorCode};

/// What a failed statement says about the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The batch is at fault; others are not.
    Refused(CommitError),
    /// The disk is full. Nothing was written and the file is sound; less may fit.
    Full(String),
    /// Nothing was written and the file is sound: a lock held by a stranger, no memory.
    Unavailable(String),
    /// The file system failed. What is on the disk is not known until the file is opened anew.
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
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::OutOfMemory
                | ErrorCode::OperationInterrupted
                | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Unavailable(text),
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
                Self::Io(text)
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(text),
            Some(_) => Self::Refused(CommitError::Refused(text)),
            None => Self::of_value(&error, text),
        }
    }
}

impl Fault {
    /// A value that could not be read is damage; one that could not be written is the batch's fault.
    fn of_value(error: &Error, text: String) -> Self {
        match error {
            Error::ToSqlConversionFailure(_) => Self::Refused(CommitError::Refused(text)),
            _ => Self::Corrupt(text),
        }
    }
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
