//! Work of a stream that goes on while the client reads nothing. The transport polls a stream only as
//! long as the client reads, so what a stream's own future holds may be held for ever.

use tokio::task::{JoinError, JoinHandle};

/// Runs a future in its own task, which ends when this is dropped.
pub(crate) async fn in_own_task<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    let mut task = OwnTask(tokio::spawn(work));
    (&mut task.0).await
}

struct OwnTask<T>(JoinHandle<T>);

impl<T> Drop for OwnTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
