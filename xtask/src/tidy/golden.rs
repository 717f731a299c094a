//! Golden files are promises to existing data: once committed they are never changed or removed,
//! only added. A manifest pins the content of each.

use std::{collections::BTreeMap, fs};

use crate::{
    files::{self, File},
    output,
    problem::Problem,
    workspace::Workspace,
};

/// One line per golden file: the path and the hash of its content.
pub(super) const MANIFEST: &str = "xtask/golden.txt";

/// Finds golden files that changed, are gone, or are not recorded yet.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    let (pinned, mut problems) = read_manifest(files);
    for (path, hash) in &pinned {
        let restore = format!(
            "restore it with `git checkout HEAD -- {path}`; a new format gets a new golden file"
        );
        match files::find(files, path) {
            None => problems.push(Problem::new(*path, "a golden file was removed", restore)),
            Some(file) if fingerprint(&file.content) != *hash => {
                problems.push(Problem::new(*path, "a golden file was changed", restore));
            }
            Some(_) => {}
        }
    }
    for file in unrecorded(files, &pinned) {
        problems.push(Problem::new(
            &file.path,
            format!("a golden file is not in {MANIFEST}"),
            "run `cargo xtask golden` and commit the line that it adds",
        ));
    }
    problems
}

/// Appends golden files that are missing in the manifest; never changes an existing line.
pub(crate) fn record(workspace: &Workspace) -> Result<(), Vec<Problem>> {
    let files = files::read(&workspace.root)?;
    let (pinned, problems) = read_manifest(&files);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut manifest = files::find(&files, MANIFEST).and_then(File::text).unwrap_or("").to_owned();
    let mut count = 0;
    for file in unrecorded(&files, &pinned) {
        manifest.push_str(&format!("{} {}\n", file.path, fingerprint(&file.content)));
        output::line(&format!("golden: recorded {}", file.path));
        count += 1;
    }
    if count > 0 {
        fs::write(workspace.root.join(MANIFEST), manifest).map_err(|error| {
            Problem::new(MANIFEST, format!("cannot write: {error}"), "make it writable")
        })?;
    }
    output::line(&format!("golden: {count} new, {} already recorded", pinned.len()));
    Ok(())
}

fn unrecorded<'a>(
    files: &'a [File],
    pinned: &BTreeMap<&str, &str>,
) -> impl Iterator<Item = &'a File> {
    files.iter().filter(|file| is_golden(&file.path) && !pinned.contains_key(file.path.as_str()))
}

fn is_golden(path: &str) -> bool {
    path.starts_with("golden/") || path.contains("/golden/")
}

fn read_manifest(files: &[File]) -> (BTreeMap<&str, &str>, Vec<Problem>) {
    let mut pinned = BTreeMap::new();
    let mut problems = Vec::new();
    let text = files::find(files, MANIFEST).and_then(File::text).unwrap_or_default();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            continue;
        }
        let refused = match line.rsplit_once(' ') {
            Some((path, hash)) => pinned.insert(path, hash).map(|_| "names a file again"),
            None => Some("is not a path and a hash"),
        };
        if let Some(reason) = refused {
            problems.push(Problem::new(
                format!("{MANIFEST}:{}", index + 1),
                format!("`{line}` {reason}"),
                "remove the line and run `cargo xtask golden`",
            ));
        }
    }
    (pinned, problems)
}

/// 64-bit FNV-1a as 16 hexadecimal digits: guards against accidents, not forgery.
fn fingerprint(content: &[u8]) -> String {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let hash = content
        .iter()
        .fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/a/golden/one.bin";

    fn check_tree(golden: &[(&str, &str)], manifest: &str) -> Vec<String> {
        let mut files: Vec<File> =
            golden.iter().map(|(path, text)| File::new(*path, *text)).collect();
        files.push(File::new(MANIFEST, manifest));
        check(&files).iter().map(Problem::to_string).collect()
    }

    fn manifest_of(text: &str) -> String {
        format!("# Comment.\n{PATH} {}\n", fingerprint(text.as_bytes()))
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(fingerprint(b""), "cbf29ce484222325");
        assert_eq!(fingerprint(b"a"), "af63dc4c8601ec8c");
        assert_eq!(fingerprint(b"foobar"), "85944171f73967e8");
    }

    #[test]
    fn recorded_files_pass() {
        assert!(check_tree(&[(PATH, "one")], &manifest_of("one")).is_empty());
    }

    #[test]
    fn change_removal_and_novelty_are_found() {
        let manifest = manifest_of("one");
        assert!(check_tree(&[(PATH, "two")], &manifest)[0].contains("was changed"));
        assert!(check_tree(&[], &manifest)[0].contains("was removed"));
        let grown = [(PATH, "one"), ("golden/two.bin", "two")];
        assert!(check_tree(&grown, &manifest)[0].contains("cargo xtask golden"));
    }

    #[test]
    fn a_broken_manifest_is_found() {
        assert!(check_tree(&[], "nonsense\n")[0].contains("golden.txt:1"));
        let twice = manifest_of("one").repeat(2);
        assert!(check_tree(&[(PATH, "one")], &twice)[0].contains("names a file again"));
    }
}
