//! Connections that only read, each on a thread of its own, which take reads from one queue. Reads
//! that wait together share a transaction, which begins when all of them are queued: each sees all
//! that was committed before it began, and nothing half.

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

/// A read with the way back. It is told why if there is no snapshot to read.
type Task = Box<dyn FnOnce(Result<&Connection, &rusqlite::Error>) + Send>;

/// How many reads share a transaction at most. More would wait too long behind a slow one.
const GROUP_MAX: usize = 16;

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
        let task = Box::new(move |snapshot: Result<&Connection, &rusqlite::Error>| {
            // A caller that has gone away no longer wants to know.
            if reply.is_canceled() {
                return;
            }
            let answer = match snapshot {
                Ok(connection) => work(connection).map_err(of_read),
                Err(error) => Err(ReadError::Unavailable(error.to_string())),
            };
            // The caller may have gone away meanwhile.
            let _ = reply.send(answer);
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

fn serve(connection: &Connection, tasks: &Mutex<Receiver<Task>>) {
    let mut group = Vec::with_capacity(GROUP_MAX);
    while take_group(tasks, &mut group) {
        let begun = run(connection, "BEGIN");
        for task in group.drain(..) {
            task(begun.as_ref().map(|()| connection));
        }
        if begun.is_ok() {
            // Nothing was written, so nothing is lost. If neither ends the transaction, the next
            // BEGIN fails, and reads are told so instead of seeing an old state.
            let _ = run(connection, "COMMIT").or_else(|_| run(connection, "ROLLBACK"));
        }
    }
}

/// Waits for a read and takes those that wait with it; `false` when the queue has ended.
fn take_group(tasks: &Mutex<Receiver<Task>>, group: &mut Vec<Task>) -> bool {
    let tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(first) = tasks.recv() else { return false };
    group.push(first);
    group.extend(tasks.try_iter().take(GROUP_MAX - 1));
    true
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_nobody_waits_for_is_skipped() {
        let connection = Connection::open_in_memory().unwrap();
        let readers = Readers::start(vec![connection]).unwrap();
        let (release, released) = channel();
        let (ran, reads) = channel();
        let slow = readers.read(move |_| {
            // The reader waits until all are queued.
            let _ = released.recv();
            Ok(())
        });
        let read = |name: &'static str| {
            let ran = ran.clone();
            readers.read(move |_| {
                let _ = ran.send(name);
                Ok(())
            })
        };
        drop(read("abandoned"));
        let wanted = read("wanted");
        release.send(()).unwrap();
        pollster::block_on(slow).unwrap();
        pollster::block_on(wanted).unwrap();
        assert_eq!(reads.try_iter().collect::<Vec<_>>(), ["wanted"]);
    }
}
