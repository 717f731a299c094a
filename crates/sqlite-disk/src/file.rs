//! One file: what the process sees, what is durable, and the unsynced changes between the two.

/// The disk keeps or loses whole sectors, so a larger write can be torn.
const SECTOR: usize = 512;

enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Resize { size: usize },
}

#[derive(Default)]
pub(crate) struct File {
    seen: Vec<u8>,
    safe: Vec<u8>,
    unsynced: Vec<Change>,
}

impl File {
    pub(crate) fn size(&self) -> usize {
        self.seen.len()
    }

    /// Fills the buffer up to the end of the file, and returns the number of bytes read.
    pub(crate) fn read(&self, offset: usize, buffer: &mut [u8]) -> usize {
        let available = self.seen.get(offset..).unwrap_or_default();
        let length = available.len().min(buffer.len());
        buffer[..length].copy_from_slice(&available[..length]);
        length
    }

    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        put(&mut self.seen, offset, bytes);
        self.unsynced.push(Change::Write { offset, bytes: bytes.to_vec() });
    }

    pub(crate) fn resize(&mut self, size: usize) {
        self.seen.resize(size, 0);
        self.unsynced.push(Change::Resize { size });
    }

    pub(crate) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            match change {
                Change::Write { offset, bytes } => put(&mut self.safe, offset, &bytes),
                Change::Resize { size } => self.safe.resize(size, 0),
            }
        }
    }

    /// Fails a sync: the process still sees its writes, but no later sync makes them durable.
    pub(crate) fn fail_sync(&mut self) {
        self.unsynced.clear();
    }

    /// Writes the content that the process sees again, and syncs it.
    pub(crate) fn rewrite(&mut self) {
        self.resize(self.seen.len());
        self.write(0, &self.seen.clone());
        self.sync();
    }

    /// Discards the unsynced changes, except those sectors that `survives` picks.
    pub(crate) fn lose(&mut self, survives: &mut impl FnMut() -> bool) {
        for change in self.unsynced.drain(..) {
            match change {
                Change::Write { offset, bytes } => {
                    for (start, sector) in sectors(offset, &bytes) {
                        if survives() {
                            put(&mut self.safe, start, sector);
                        }
                    }
                }
                Change::Resize { size } if survives() => self.safe.resize(size, 0),
                Change::Resize { .. } => {}
            }
        }
        self.seen.clone_from(&self.safe);
    }
}

fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

/// Splits a write at sector boundaries.
fn sectors(mut offset: usize, mut bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    std::iter::from_fn(move || {
        let length = bytes.len().min(SECTOR - offset % SECTOR);
        let (sector, rest) = bytes.split_at_checked(length)?;
        let start = offset;
        (offset, bytes) = (offset + length, rest);
        (length > 0).then_some((start, sector))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_synced_is_lost_by_sectors() {
        let mut file = File::default();
        file.write(0, &[1; 1024]);
        file.sync();
        file.write(256, &[2; 1024]);
        let mut picks = [false, true, false].into_iter();
        file.lose(&mut || picks.next().unwrap());
        let expected = [vec![1; 512], vec![2; 512]].concat();
        assert_eq!(file.seen, expected);
        assert_eq!(file.safe, expected);
    }
}
