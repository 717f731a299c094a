//! Files of the source tree, read into memory once so that checks are plain functions of them. Git
//! lists the files; without git, all files count except build output and hidden folders.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::problem::Problem;

const GENERATED: &[&str] = &["crates/core/src/codec/generated.rs", "crates/proto/src/generated.rs"];

/// Hidden folders that contain source.
const HIDDEN_SOURCE_FOLDERS: &[&str] = &[".cargo", ".ci"];

/// File that cargo puts into every build folder, whatever its name.
const BUILD_OUTPUT_MARK: &str = "CACHEDIR.TAG";

/// One file of the source tree.
#[derive(Debug)]
pub(crate) struct File {
    /// Relative to the root, with forward slashes.
    pub(crate) path: String,
    pub(crate) content: Vec<u8>,
}

impl File {
    pub(crate) fn new(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), content: content.into() }
    }

    /// The content, if it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.content).ok().filter(|text| !text.contains('\0'))
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether this is Rust code that was not generated.
    pub(crate) fn written_rust(&self) -> bool {
        self.path.ends_with(".rs") && !GENERATED.contains(&self.path.as_str())
    }
}

/// The file at `path`, if there is one.
pub(crate) fn find<'a>(files: &'a [File], path: &str) -> Option<&'a File> {
    files.iter().find(|file| file.path == path)
}

/// Reads all files of the source tree, sorted by path.
pub(crate) fn read(root: &Path) -> Result<Vec<File>, Problem> {
    let mut paths = match listed_by_git(root) {
        Some(paths) => paths,
        None => listed_by_walking(root)?,
    };
    paths.sort();
    paths.dedup();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let full = root.join(&path);
        // Git still lists a file whose deletion is not committed.
        if full.is_file() {
            files
                .push(File::new(path, fs::read(&full).map_err(|error| unreadable(&full, &error))?));
        }
    }
    Ok(files)
}

/// Tracked files and new ones that are not ignored; `None` where git or its repository is missing.
fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()
        .filter(|output| output.status.success() && !output.stdout.is_empty())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.split_terminator('\0').map(str::to_owned).collect())
}

fn listed_by_walking(root: &Path) -> Result<Vec<String>, Problem> {
    let mut paths = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let full = root.join(&folder);
        if full.join(BUILD_OUTPUT_MARK).exists() {
            continue;
        }
        for entry in fs::read_dir(&full).map_err(|error| unreadable(&full, &error))? {
            let entry = entry.map_err(|error| unreadable(&full, &error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            if !entry.path().is_dir() {
                paths.push(path.to_string_lossy().replace('\\', "/"));
            } else if !name.starts_with('.') || HIDDEN_SOURCE_FOLDERS.contains(&name.as_str()) {
                folders.push(path);
            }
        }
    }
    Ok(paths)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(path.display().to_string(), format!("cannot read: {error}"), "make it readable")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walking_finds_this_file_and_no_build_output() {
        let paths = listed_by_walking(Path::new(".")).unwrap();
        assert!(paths.contains(&"src/files.rs".to_owned()), "{paths:?}");
        assert!(!paths.iter().any(|path| path.starts_with("target/")), "{paths:?}");
    }

    #[test]
    fn bytes_that_are_not_text_have_no_text() {
        assert_eq!(File::new("a", "words").text(), Some("words"));
        assert_eq!(File::new("a", [0xff, 0xfe]).text(), None);
        assert_eq!(File::new("a", [b'a', 0]).text(), None);
    }
}
