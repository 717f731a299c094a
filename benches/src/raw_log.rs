//! The upper bound to compare with: one file to which the bytes of each batch are appended, and one
//! thread that writes and syncs all queued batches together. It keeps no index and supports no
//! reads.

use std::{
    fs::File,
    io::{self, Write as _},
    path::Path,
    sync::mpsc::{Receiver, Sender, channel},
    thread::{self, JoinHandle},
};

use abide_store::{Batch, CommitError, Pending, Write};
use futures_channel::oneshot;

type Entry = (Vec<u8>, oneshot::Sender<Result<(), CommitError>>);

pub struct RawLog {
    queue: Option<Sender<Entry>>,
    thread: Option<JoinHandle<()>>,
}

impl RawLog {
    /// Creates the file.
    ///
    /// # Errors
    /// If the file or the thread cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::create_new(path)?;
        let (queue, entries) = channel();
        let thread = thread::Builder::new().spawn(move || write_all(file, &entries))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Completes when the bytes of the batch are durable.
    pub fn append(&self, batch: &Batch) -> Pending<'_, (), CommitError> {
        let (reply, answer) = oneshot::channel();
        if let Some(queue) = &self.queue {
            // If the thread has ended, the entry is dropped and with it the reply channel.
            let _ = queue.send((encode(batch), reply));
        }
        Box::pin(async move {
            answer.await.map_err(|_| CommitError::Stopped("the log has ended".to_owned()))?
        })
    }
}

impl Drop for RawLog {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_all(mut file: File, entries: &Receiver<Entry>) {
    let mut buffer = Vec::new();
    while let Ok(first) = entries.recv() {
        let group: Vec<Entry> = std::iter::once(first).chain(entries.try_iter()).collect();
        buffer.clear();
        group.iter().for_each(|(bytes, _)| buffer.extend_from_slice(bytes));
        let written = file.write_all(&buffer).and_then(|()| file.sync_data());
        let answer = written.map_err(|error| CommitError::Unknown(error.to_string()));
        for (_, reply) in group {
            let _ = reply.send(answer.clone());
        }
    }
}

/// Bytes of a batch: those of its log row, and approximately those of each other row.
fn encode(batch: &Batch) -> Vec<u8> {
    const OTHER_ROW: [u8; 80] = [b'r'; 80];
    let mut bytes = vec![batch.shard.number()];
    for write in &batch.writes {
        match write {
            Write::AppendLog(row) => {
                bytes.extend_from_slice(row.run.as_bytes());
                bytes.extend_from_slice(&row.sequence.to_be_bytes());
                bytes.extend_from_slice(&row.events);
                bytes.extend_from_slice(&row.notes);
            }
            _ => bytes.extend_from_slice(&OTHER_ROW),
        }
    }
    bytes
}
