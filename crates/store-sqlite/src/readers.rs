//! Connections that only read, each on its own thread, which take reads from one queue. Reads that
//! are queued together share a transaction, which begins after all of them were queued: each sees
//! everything committed before it was called, and never a part of a commit.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use abide_store::{Pending, ReadError};
use futures_channel::oneshot;
use rusqlite::Connection;

use crate::fault::of_read;

/// A read with its reply channel. It gets the error if there is no snapshot to read.
type Task = Box<dyn FnOnce(Result<&Connection, &rusqlite::Error>) + Send>;

/// Most reads that share a transaction. More would wait too long behind a slow one.
const GROUP_MAX: usize = 16;

/// How many reads may be queued per reader that is being woken. Waking a thread costs more than a
/// read, so a few that come together share one.
const READS_PER_WAKE: usize = 4;

/// The queue of reads. Dropping it finishes the queued ones.
pub(crate) struct Readers {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

/// State that all readers share. A new read wakes one reader, and none if all are busy or enough
/// are waking up.
#[derive(Default)]
struct Queue {
    waiting: Mutex<ReadQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct ReadQueue {
    tasks: VecDeque<Task>,
    idle_readers: usize,
    /// Idle readers that were notified and have not woken up yet.
    woken_readers: usize,
    live_readers: usize,
    ended: bool,
}

impl Readers {
    pub(crate) fn start(connections: Vec<Connection>) -> std::io::Result<Self> {
        let mut readers = Self { queue: Arc::default(), threads: Vec::new() };
        for connection in connections {
            let queue = Arc::clone(&readers.queue);
            queue.lock().live_readers += 1;
            let live = LiveReader(Arc::clone(&queue));
            let thread = thread::Builder::new().name("abide-sqlite-reader".to_owned());
            readers.threads.push(thread.spawn(move || {
                let _live = live;
                serve(&connection, &queue);
            })?);
        }
        Ok(readers)
    }

    /// Queues a read; the future resolves with its result.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Pending<'static, T> {
        let (reply, answer) = oneshot::channel();
        let task = Box::new(move |snapshot: Result<&Connection, &rusqlite::Error>| {
            // The caller has dropped its future, so the read is skipped.
            if reply.is_canceled() {
                return;
            }
            let answer = match snapshot {
                Ok(connection) => work(connection).map_err(of_read),
                Err(error) => Err(ReadError::Unavailable(error.to_string())),
            };
            // The caller may have dropped its future meanwhile.
            let _ = reply.send(answer);
        });
        self.queue.push(task);
        Box::pin(async move {
            let ended = |_| ReadError::Unavailable("the readers have ended".to_owned());
            answer.await.map_err(ended)?
        })
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue.end();
        for thread in self.threads.drain(..) {
            // A reader that panicked has dropped the reply channel, which tells its caller.
            let _ = thread.join();
        }
    }
}

/// Represents one live reader. When the last one is dropped, queued reads are dropped too, which
/// tells their callers.
struct LiveReader(Arc<Queue>);

impl Drop for LiveReader {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.live_readers -= 1;
        let abandoned = match waiting.live_readers {
            0 => std::mem::take(&mut waiting.tasks),
            _ => VecDeque::new(),
        };
        drop(waiting);
        drop(abandoned);
    }
}

impl Queue {
    /// Queues a read. Once all readers have ended, no reader would take it, so it is dropped.
    fn push(&self, task: Task) {
        let mut waiting = self.lock();
        if waiting.live_readers == 0 {
            return;
        }
        waiting.tasks.push_back(task);
        let wake = waiting.idle_readers > waiting.woken_readers
            && waiting.tasks.len() > waiting.woken_readers * READS_PER_WAKE;
        if wake {
            waiting.woken_readers += 1;
        }
        drop(waiting);
        if wake {
            self.changed.notify_one();
        }
    }

    fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Waits for a read and takes those queued with it; `false` when the queue has ended.
    fn take_group(&self, group: &mut Vec<Task>) -> bool {
        let mut waiting = self.lock();
        while waiting.tasks.is_empty() {
            if waiting.ended {
                return false;
            }
            waiting.idle_readers += 1;
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.idle_readers -= 1;
            // A spurious wake-up takes the place of another reader, which finds no read and waits
            // again.
            waiting.woken_readers = waiting.woken_readers.saturating_sub(1);
        }
        let count = waiting.tasks.len().min(GROUP_MAX);
        group.extend(waiting.tasks.drain(..count));
        true
    }

    /// A poisoned lock is fine: nothing that could panic runs under it.
    fn lock(&self) -> MutexGuard<'_, ReadQueue> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(connection: &Connection, queue: &Queue) {
    let mut group = Vec::with_capacity(GROUP_MAX);
    while queue.take_group(&mut group) {
        let begun = run(connection, "BEGIN");
        for task in group.drain(..) {
            task(begun.as_ref().map(|()| connection));
        }
        if begun.is_ok() {
            // Nothing was written, so nothing is lost. If neither ends the transaction, the next
            // BEGIN fails, and reads get an error instead of stale data.
            let _ = run(connection, "COMMIT").or_else(|_| run(connection, "ROLLBACK"));
        }
    }
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_read_that_nobody_waits_for_is_skipped() {
        let connection = Connection::open_in_memory().unwrap();
        let readers = Readers::start(vec![connection]).unwrap();
        let (release, released) = channel();
        let (ran, reads) = channel();
        let slow = readers.read(move |_| {
            // Blocks the reader until all reads are queued.
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

    #[test]
    fn reads_of_many_threads_are_all_answered() {
        let connections = (0..4).map(|_| Connection::open_in_memory().unwrap()).collect();
        let readers = Readers::start(connections).unwrap();
        let ask = |asked: u64| {
            let reads: Vec<_> =
                (0..asked % 7 + 1).map(|_| readers.read(move |_| Ok(asked))).collect();
            for read in reads {
                assert_eq!(pollster::block_on(read), Ok(asked));
            }
        };
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..500).for_each(ask));
            }
        });
    }

    #[test]
    fn when_all_readers_have_ended_reads_are_refused() {
        let readers = Readers::start(vec![Connection::open_in_memory().unwrap()]).unwrap();
        let refused = |read: Pending<'static, ()>| {
            assert!(matches!(pollster::block_on(read), Err(ReadError::Unavailable(_))));
        };
        let (release, released) = channel::<()>();
        let failing = readers.read(move |_| {
            let _ = released.recv();
            panic!("a reader fails, as this test wants");
        });
        let behind: Vec<_> = (0..2 * GROUP_MAX).map(|_| readers.read(|_| Ok(()))).collect();
        release.send(()).unwrap();
        refused(failing);
        behind.into_iter().for_each(refused);
        refused(readers.read(|_| Ok(())));
    }
}
