//! Promises of earlier commits hold: the manifest of golden files only grows, and no number in the
//! ratchet is raised. The tree is compared with the last two commits, so that both an uncommitted
//! change and one just committed are seen.

use std::{path::Path, process::Command};

use crate::{
    files::{self, File},
    problem::Problem,
    tidy::{golden, sizes},
};

const EARLIER: [&str; 2] = ["HEAD", "HEAD^"];

/// Finds broken promises. Without git, or in the first commit, there are none.
pub(crate) fn check(root: &Path, files: &[File]) -> Vec<Problem> {
    let now = |path| files::find(files, path).and_then(File::text).unwrap_or_default();
    EARLIER
        .iter()
        .flat_map(|commit| {
            let before = |path| committed(root, commit, path);
            let golden = before(golden::MANIFEST)
                .map(|before| removed_lines(&before, now(golden::MANIFEST)))
                .unwrap_or_default();
            let raised = before(sizes::RATCHET)
                .map(|before| raised_numbers(&before, now(sizes::RATCHET)))
                .unwrap_or_default();
            golden.into_iter().chain(raised)
        })
        .collect()
}

fn committed(root: &Path, commit: &str, path: &str) -> Option<String> {
    let object = format!("{commit}:{path}");
    let output = Command::new("git").current_dir(root).args(["show", &object]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn removed_lines(before: &str, now: &str) -> Vec<Problem> {
    before
        .lines()
        .filter(|line| !now.lines().any(|kept| kept == *line))
        .map(|line| {
            let what = format!("the line `{line}` was changed or removed");
            Problem::new(golden::MANIFEST, what, "restore the line and its golden file")
        })
        .collect()
}

fn raised_numbers(before: &str, now: &str) -> Vec<Problem> {
    let numbers = |text: &'_ str| -> Vec<(String, usize)> {
        text.lines()
            .filter_map(|line| line.rsplit_once(' '))
            .filter_map(|(path, lines)| Some((path.to_owned(), lines.parse().ok()?)))
            .collect()
    };
    let before = numbers(before);
    numbers(now)
        .into_iter()
        .filter(|(path, lines)| before.iter().any(|(p, allowed)| p == path && lines > allowed))
        .map(|(path, lines)| {
            let what = format!("{path} was raised to {lines}");
            Problem::new(sizes::RATCHET, what, "move the addition into a file of its own")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_may_only_grow() {
        assert!(removed_lines("a 1\n", "a 1\nb 2\n").is_empty());
        let found = removed_lines("a 1\nb 2\n", "a 3\nb 2\n");
        assert!(found[0].to_string().contains("`a 1` was changed or removed"));
    }

    #[test]
    fn the_ratchet_may_only_fall() {
        assert!(raised_numbers("a.rs 700\n", "a.rs 650\n").is_empty());
        assert!(raised_numbers("a.rs 700\n", "").is_empty());
        let found = raised_numbers("a.rs 700\n", "a.rs 701\n");
        assert!(found[0].to_string().contains("a.rs was raised to 701"));
    }
}
