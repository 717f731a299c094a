//! Connections that only read, each on a thread of its own, which take reads from one queue. Each read
//! is a transaction: it sees all that was committed before it began, and nothing half.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
};

use abide_store::{Pending, ReadError};
use futures_channel::oneshot;
use rusqlite::Connection;

use crate::fault::of_read;

type Task = Box<dyn FnOnce(&Connection) + Send>;

/// The queue of reads. Dropping it finishes those that are queued.
pub(crate) struct Readers {
    queue: Option<Sender<Task>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(crate) fn start(connections: Vec<Connection>) -> std::io::Result<Self> {
        let (queue, tasks) = channel();
        let tasks = Arc::new(Mutex::new(tasks));
        let spawn = |connection| {
            let tasks = Arc::clone(&tasks);
            let thread = thread::Builder::new().name("abide-sqlite-reader".to_owned());
            thread.spawn(move || serve(&connection, &tasks))
        };
        let threads = connections.into_iter().map(spawn).collect::<Result<_, _>>()?;
        Ok(Self { queue: Some(queue), threads })
    }

    /// Queues a read and answers later.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Pending<'static, T> {
        let (reply, answer) = oneshot::channel();
        let task = Box::new(move |connection: &Connection| {
            // A caller that has gone away no longer wants to know.
            let _ = reply.send(in_snapshot(connection, work).map_err(of_read));
        });
        if let Some(queue) = &self.queue {
            // If all readers have ended, the task is dropped and with it the reply.
            let _ = queue.send(task);
        }
        Box::pin(async move {
            let ended = |_| ReadError::Unavailable("the readers have ended".to_owned());
            answer.await.map_err(ended)?
        })
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            // A reader that panicked has told its caller so by dropping the reply.
            let _ = thread.join();
        }
    }
}

fn in_snapshot<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let snapshot = connection.unchecked_transaction()?;
    work(&snapshot)
}

fn serve(connection: &Connection, tasks: &Mutex<Receiver<Task>>) {
    let next = || tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(task) = next() {
        task(connection);
    }
}
