//! Cost of one sync of the disk: the lower bound of every commit.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use crate::latencies::Latencies;

/// Bytes that are appended before each sync.
const PIECE: [u8; 4096] = [b'x'; 4096];

/// Repeatedly appends 4 kB and syncs, for this long, in a new file of this directory.
pub fn fdatasync(directory: &Path, time: Duration) -> io::Result<Latencies> {
    let path = directory.join("fdatasync");
    let mut file = File::create_new(&path)?;
    let (begun, mut latencies) = (Instant::now(), Vec::new());
    while begun.elapsed() < time {
        file.write_all(&PIECE)?;
        let before = Instant::now();
        file.sync_data()?;
        latencies.push(before.elapsed());
    }
    drop(file);
    fs::remove_file(path)?;
    Ok(latencies.into())
}
