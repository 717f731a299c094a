//! The mark beside a store: a small file that says that a store is here, and a lower bound of the
//! rows in its log. A store whose files were removed, emptied or cut has fewer rows than its mark
//! says, and is not mistaken for a new one.
//!
//! The number is written after each commit and never synced, which costs next to nothing. It may be
//! too low after a power cut, and is never too high, because it follows what was synced.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

/// The beginning of the file, for people who find it.
const TEXT: &str = "A store of Abide is here. Remove this file only if the store beside it is meant to \
    be new, or older than it was.\nrows in its log: ";

/// Digits of the number: a fixed width, so that each number overwrites the last one.
const DIGITS: usize = 20;

pub(crate) struct Mark {
    file: File,
    rows: u64,
}

impl Mark {
    /// Path of the mark of a store.
    pub(crate) fn path_of(store: &Path) -> PathBuf {
        beside(store, ".mark")
    }

    /// A lower bound of the rows in the store's log; `None` if there is no mark. An unreadable mark
    /// still says that there was a store.
    pub(crate) fn read(store: &Path) -> io::Result<Option<u64>> {
        let mut text = Vec::new();
        match File::open(Self::path_of(store)) {
            Ok(file) => file.take(4096).read_to_end(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let number = text.strip_prefix(TEXT.as_bytes()).and_then(|rest| rest.get(..DIGITS));
        let number = number.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        Ok(Some(number.unwrap_or_default()))
    }

    /// Creates the mark of a store, and syncs it.
    pub(crate) fn make(store: &Path, rows: u64) -> io::Result<Self> {
        let mut options = File::options();
        let path = Self::path_of(store);
        let mut file = private(options.create(true).truncate(false).write(true)).open(path)?;
        let text = format!("{TEXT}{rows:0DIGITS$}\n");
        file.write_all(text.as_bytes())?;
        file.set_len(u64::try_from(text.len()).unwrap_or(u64::MAX))?;
        file.sync_all()?;
        Ok(Self { file, rows })
    }

    /// Records that the log has, or is about to have, so many rows. If writing fails, the mark
    /// keeps its number.
    pub(crate) fn note(&mut self, rows: u64) -> io::Result<()> {
        if rows != self.rows {
            self.file.seek(SeekFrom::Start(u64::try_from(TEXT.len()).unwrap_or(u64::MAX)))?;
            self.file.write_all(format!("{rows:0DIGITS$}").as_bytes())?;
            self.rows = rows;
        }
        Ok(())
    }

    /// The log is about to have fewer rows. Synced, or a power cut could leave the higher number beside
    /// the log that a later commit has shortened.
    pub(crate) fn lower(&mut self, rows: u64) -> io::Result<()> {
        self.note(rows)?;
        self.file.sync_data()
    }

    /// A mark on a disk that is full.
    #[cfg(all(test, target_os = "linux"))]
    pub(crate) fn without_room(rows: u64) -> Self {
        Self { file: File::options().write(true).open("/dev/full").expect("Linux has it"), rows }
    }

    /// The number of rows in the mark.
    pub(crate) const fn rows(&self) -> u64 {
        self.rows
    }
}

/// Path of a file beside the store: the store's name with this suffix.
pub(crate) fn beside(store: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = store.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Makes a new file accessible to its owner only.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_what_was_noted_last() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store");
        assert_eq!(Mark::read(&store).unwrap(), None);
        let mut mark = Mark::make(&store, 7).unwrap();
        assert_eq!(Mark::read(&store).unwrap(), Some(7));
        for rows in [u64::MAX, 12, 12, 0] {
            mark.note(rows).unwrap();
            assert_eq!(Mark::read(&store).unwrap(), Some(rows));
        }
        let text = std::fs::read_to_string(Mark::path_of(&store)).unwrap();
        assert!(text.ends_with("rows in its log: 00000000000000000000\n"), "{text}");
    }

    #[test]
    fn a_mark_that_cannot_be_understood_still_says_that_there_was_a_store() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store");
        for text in ["", "nonsense", TEXT] {
            std::fs::write(Mark::path_of(&store), text).unwrap();
            assert_eq!(Mark::read(&store).unwrap(), Some(0), "{text:?}");
        }
        drop(Mark::make(&store, 3).unwrap());
        assert_eq!(Mark::read(&store).unwrap(), Some(3));
    }
}
