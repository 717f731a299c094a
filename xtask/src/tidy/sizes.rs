//! Files stay small enough to read in one sitting. A file over the limit is listed in the ratchet
//! with its exact size, so that it can shrink but never grow. Clippy checks the length of
//! functions.

use std::collections::BTreeMap;

use crate::{
    files::{self, File},
    problem::Problem,
};

/// Maximum lines of a file, without its tests.
const FILE_LINES_MAX: usize = 600;

/// Maximum lines of a `lib.rs`: docs, modules and re-exports.
const LIB_LINES_MAX: usize = 150;

/// The page that explains where things live, and its maximum size: a quarter of an hour to read.
const OVERVIEW: &str = "ARCHITECTURE.md";
const OVERVIEW_BYTES_MAX: usize = 24_000;

/// Exceptions, one per line: a path and its number of lines.
pub(super) const RATCHET: &str = "xtask/ratchet.txt";

/// Finds files that are too long and exceptions that are out of date.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    let (ratchet, mut problems) = read_ratchet(files);
    let sources: Vec<(&str, &File)> =
        files.iter().filter(|file| file.written_rust()).filter_map(with_text).collect();
    for (text, file) in &sources {
        let lines = lines_without_tests(text);
        problems.extend(compare(file, lines, ratchet.get(file.path.as_str()).copied()));
    }
    for path in ratchet.keys().filter(|path| !sources.iter().any(|(_, file)| file.path == **path)) {
        let what = format!("lists {path}, which is not a Rust file of this tree");
        problems.push(Problem::new(RATCHET, what, "remove the line"));
    }
    problems.extend(files::find(files, OVERVIEW).and_then(check_overview));
    problems
}

fn check_overview(file: &File) -> Option<Problem> {
    let bytes = file.content.len();
    (bytes > OVERVIEW_BYTES_MAX).then(|| {
        let what = format!("has {bytes} bytes; the limit is {OVERVIEW_BYTES_MAX}");
        Problem::new(OVERVIEW, what, "move details beside the code that they explain")
    })
}

fn with_text(file: &File) -> Option<(&str, &File)> {
    file.text().map(|text| (text, file))
}

fn compare(file: &File, lines: usize, excepted: Option<usize>) -> Option<Problem> {
    let limit = if file.name() == "lib.rs" { LIB_LINES_MAX } else { FILE_LINES_MAX };
    let path = &file.path;
    match excepted {
        None if lines > limit => Some(Problem::new(
            path,
            format!("has {lines} lines without its tests; the limit is {limit}"),
            "move one idea into a file of its own",
        )),
        Some(allowed) if lines > allowed => Some(Problem::new(
            path,
            format!("grew to {lines} lines; {RATCHET} allows {allowed}"),
            "move the addition into a file of its own; the ratchet is never raised",
        )),
        Some(_) if lines <= limit => Some(Problem::new(
            RATCHET,
            format!("lists {path}, which has {lines} lines and needs no exception"),
            "remove the line",
        )),
        Some(allowed) if lines < allowed => Some(Problem::new(
            RATCHET,
            format!("allows {path} {allowed} lines, but it has only {lines}"),
            format!("lower the line to `{path} {lines}`"),
        )),
        None | Some(_) => None,
    }
}

/// Lines before a trailing test module. Clippy (`items_after_test_module`) ensures that only tests
/// follow.
fn lines_without_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let Some(module) = lines.iter().rposition(|line| line.starts_with("mod tests {")) else {
        return lines.len();
    };
    let attributes =
        lines[..module].iter().rev().take_while(|line| line.starts_with(['#', ' ', ')'])).count();
    let start = module - attributes;
    if lines[start..module].contains(&"#[cfg(test)]") { start } else { lines.len() }
}

fn read_ratchet(files: &[File]) -> (BTreeMap<&str, usize>, Vec<Problem>) {
    let mut entries = BTreeMap::new();
    let mut problems = Vec::new();
    let text = files::find(files, RATCHET).and_then(File::text).unwrap_or_default();
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_once(' ').map(|(path, lines)| (path, lines.parse())) {
            Some((path, Ok(lines))) => {
                entries.insert(path, lines);
            }
            _ => problems.push(Problem::new(
                format!("{RATCHET}:{}", index + 1),
                format!("`{line}` is not an exception"),
                "write a path, one space and a number of lines",
            )),
        }
    }
    (entries, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, lines: usize) -> File {
        File::new(path, "//! Line.\n".repeat(lines))
    }

    fn check_one(path: &str, lines: usize, ratchet: &str) -> Vec<String> {
        let files = [source(path, lines), File::new(RATCHET, ratchet)];
        check(&files).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn limits_are_inclusive() {
        assert!(check_one("a/src/run.rs", 600, "").is_empty());
        assert!(check_one("a/src/lib.rs", 150, "").is_empty());
        assert!(check_one("crates/core/src/codec/generated.rs", 9000, "").is_empty());
    }

    #[test]
    fn a_long_overview_is_found() {
        let check_bytes = |bytes: usize| check(&[File::new(OVERVIEW, "x".repeat(bytes))]);
        assert!(check_bytes(24_000).is_empty());
        assert!(check_bytes(24_001)[0].to_string().contains("has 24001 bytes"));
    }

    #[test]
    fn a_long_file_is_found() {
        assert!(check_one("a/src/run.rs", 601, "")[0].contains("has 601 lines"));
        assert!(check_one("a/src/lib.rs", 151, "")[0].contains("the limit is 150"));
    }

    #[test]
    fn tests_at_the_end_do_not_count() {
        let code = "//! Doc.\n\nfn one() {}\n";
        let tests = "#[cfg(test)]\nmod tests {\n    fn two() {}\n}\n";
        assert_eq!(lines_without_tests(&format!("{code}{tests}")), 3);
        assert_eq!(lines_without_tests(&format!("{code}mod tests {{\n}}\n")), 5);
        let with_reason =
            "#[cfg(test)]\n#[expect(\n    lint,\n    reason = \"\"\n)]\nmod tests {\n}\n";
        assert_eq!(lines_without_tests(&format!("{code}{with_reason}")), 3);
    }

    #[test]
    fn an_exception_is_exact_and_only_shrinks() {
        let path = "a/src/run.rs";
        assert!(check_one(path, 700, "# Why.\na/src/run.rs 700\n").is_empty());
        assert!(check_one(path, 701, "a/src/run.rs 700\n")[0].contains("grew to 701 lines"));
        assert!(check_one(path, 650, "a/src/run.rs 700\n")[0].contains("`a/src/run.rs 650`"));
        assert!(check_one(path, 600, "a/src/run.rs 700\n")[0].contains("needs no exception"));
        assert!(check_one(path, 9, "gone.rs 700\n")[0].contains("lists gone.rs"));
        assert!(check_one(path, 9, "nonsense\n")[0].contains("ratchet.txt:1"));
    }
}
