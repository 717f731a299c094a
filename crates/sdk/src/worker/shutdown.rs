//! What may stop a worker: the output of the future that [`Worker::run_until`] waits for.
//!
//! [`Worker::run_until`]: super::Worker::run_until

use super::WorkerError;
use crate::returned::BoxError;

/// The output of a future that stops a worker: nothing, an option, or a result such as that of
/// `tokio::signal::ctrl_c()`, whose error becomes [`WorkerError::Shutdown`].
pub trait ShutdownOutput {
    /// What [`Worker::run_until`](super::Worker::run_until) returns. Under `abide replay`, which ends
    /// a worker before the future does, that is the default.
    type Value: Default;

    /// The value, or the error of the future.
    fn into_value(self) -> Result<Self::Value, WorkerError>;
}

impl ShutdownOutput for () {
    type Value = ();

    fn into_value(self) -> Result<(), WorkerError> {
        Ok(())
    }
}

impl<T> ShutdownOutput for Option<T> {
    type Value = Self;

    fn into_value(self) -> Result<Self, WorkerError> {
        Ok(self)
    }
}

impl<T: Default, E: Into<BoxError>> ShutdownOutput for Result<T, E> {
    type Value = T;

    fn into_value(self) -> Result<T, WorkerError> {
        self.map_err(|error| WorkerError::Shutdown(error.into()))
    }
}
