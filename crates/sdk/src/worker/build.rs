//! The default build id: a hash of the running executable. Processes of one build share it, and a
//! changed program gets another one without any configuration.

use std::{
    fs::File,
    hash::{DefaultHasher, Hasher},
    io::{self, Read},
    sync::OnceLock,
};

use abide_core::ids::BuildId;

const CHUNK_BYTES: usize = 1 << 20;

/// The build id of this executable, computed once; none if the file cannot be read.
pub(super) fn of_executable() -> Option<BuildId> {
    static BUILD: OnceLock<Option<BuildId>> = OnceLock::new();
    BUILD
        .get_or_init(|| {
            hash_executable()
                .inspect_err(|error| {
                    tracing::warn!(%error, "the executable cannot be read: this worker has no build id");
                })
                .ok()
        })
        .clone()
}

/// The standard library's hash may differ between compilers, but one executable is built by one
/// compiler.
fn hash_executable() -> io::Result<BuildId> {
    let mut file = File::open(std::env::current_exe()?)?;
    let mut hasher = DefaultHasher::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(format!("{:016x}", hasher.finish()).into()),
            length => hasher.write(&chunk[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_executable_has_one_build_id() {
        let build = of_executable().unwrap();
        assert_eq!(build.as_str().len(), 16);
        assert_eq!(hash_executable().unwrap(), build);
    }
}
