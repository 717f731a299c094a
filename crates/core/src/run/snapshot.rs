//! A folded log as bytes: a cache, never an authority. The version comes first; a snapshot of
//! another version is ignored, and the log is folded from the start.

use bytes::{BufMut, Bytes, BytesMut};

use super::Run;

/// Version of the snapshot format. Raise it with every change of [`Run`] or of a type inside it.
pub const SNAPSHOT_VERSION: u16 = 15;

impl Run {
    /// Encodes the durable part of the run.
    pub fn to_snapshot(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        bytes.put_u16(SNAPSHOT_VERSION);
        // Serialising plain data into memory cannot fail; if it did, the empty state would be
        // ignored on decoding, like an unknown version.
        bytes.put_slice(&postcard::to_allocvec(self).unwrap_or_default());
        bytes.freeze()
    }

    /// Number of items in a snapshot of the run, to decide how often one is worth writing.
    pub fn snapshot_items(&self) -> usize {
        let timers = self.timers.len() + self.fired.len();
        let open = timers + self.waits.len() + self.activities.len();
        let others = self.children.len() + self.externals.len() + self.outbox.len();
        let keys = [&self.signal_keys, &self.cancel_keys, &self.pause_keys, &self.unpause_keys];
        let keys = keys.iter().map(|keys| keys.len()).sum::<usize>() + self.reschedule_keys.len();
        let keys = keys + self.reset_keys.len() + self.earlier_terminate_keys.len();
        open + others + keys + self.buffer.len() + self.updates.len() + self.carried_updates.len()
    }

    /// Decodes a snapshot, if this version can read it.
    pub fn from_snapshot(bytes: &[u8]) -> Option<Self> {
        let (version, state) = bytes.split_first_chunk::<2>()?;
        if u16::from_be_bytes(*version) != SNAPSHOT_VERSION {
            return None;
        }
        postcard::from_bytes(state).ok()
    }
}
