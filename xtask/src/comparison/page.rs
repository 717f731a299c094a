//! The part of the page that is written by machine: a table of counts, then each program for each system.

use std::collections::BTreeSet;

use super::{CONCEPTS, PAGE, PROGRAMS, System, systems};
use crate::{
    files::{self, File},
    problem::Problem,
};

/// Everything below this line is written by machine.
const MARK: &str = "<!-- Below this line, `cargo xtask comparison` writes. -->\n";

/// One program for one system.
struct Program<'a> {
    system: &'static System,
    /// Its text, without the comment that introduces it.
    text: &'a str,
    lines: usize,
    concepts: Vec<&'a str>,
}

/// The page with its written part as it should be.
pub(super) fn complete(files: &[File]) -> Result<String, Vec<Problem>> {
    let text = |path: &str| files::find(files, path).and_then(File::text).unwrap_or_default();
    let Some((prose, _)) = text(PAGE).split_once(MARK) else {
        let what = format!("has no line `{}`", MARK.trim());
        return Err(Problem::new(PAGE, what, "add it where the counts shall begin").into());
    };
    let mut problems = Vec::new();
    let mut table = heading();
    let mut shown = String::new();
    for (program, title) in PROGRAMS {
        shown.push_str(&format!("\n## {}\n", title.trim_end_matches('.')));
        table.push_str(&format!("| {program} |"));
        for system in systems() {
            let path = system.path(program);
            let read = Program::read(system, program, text(&path), text(CONCEPTS));
            problems.extend(read.wrong(&path));
            table.push_str(&format!(" {} / {} |", read.lines, read.concepts.len()));
            shown.push_str(&read.block());
        }
        table.push('\n');
    }
    if problems.is_empty() { Ok(format!("{prose}{MARK}\n{table}{shown}")) } else { Err(problems) }
}

fn heading() -> String {
    let names: Vec<&str> = systems().map(|system| system.name).collect();
    let rule = "---|".repeat(names.len());
    format!("| lines / concepts | {} |\n|---|{rule}\n", names.join(" | "))
}

impl<'a> Program<'a> {
    fn read(system: &'static System, name: &str, file: &'a str, concepts: &'a str) -> Self {
        let introduction: usize = file
            .split_inclusive('\n')
            .take_while(|line| line.starts_with("//!") || line.trim().is_empty())
            .map(str::len)
            .sum();
        let text = &file[introduction..];
        let key = format!("{} {name}: ", system.folder);
        let listed = concepts.lines().find_map(|line| line.strip_prefix(key.as_str()));
        Self {
            system,
            text,
            lines: text.lines().filter(|line| counts(line)).count(),
            concepts: listed.unwrap_or_default().split_whitespace().collect(),
        }
    }

    /// What is missing, or listed in error.
    fn wrong(&self, path: &str) -> Vec<Problem> {
        let words: BTreeSet<&str> = self.text.split(|c: char| !in_word(c)).collect();
        let mut problems = Vec::new();
        let mut found = |what: String, fix: &str| problems.push(Problem::new(path, what, fix));
        if self.text.is_empty() {
            found("is missing or empty".to_owned(), "write the program");
        }
        if self.concepts.is_empty() {
            let what = format!("has no line in {CONCEPTS}");
            found(what, "list the names of the system's crates that it uses");
        }
        let mut seen = BTreeSet::new();
        for concept in &self.concepts {
            if !words.contains(concept) || !seen.insert(concept) {
                let what = format!("does not use `{concept}`, or {CONCEPTS} lists it twice");
                found(what, "correct the list");
            }
        }
        problems
    }

    /// Not as `rust`, which rustdoc would compile once more, and without the neighbours' crates.
    fn block(&self) -> String {
        let Self { text, system, .. } = self;
        format!("\n**{}**\n\n```rs\n{text}```\n", system.name)
    }
}

/// Blank lines and comments do not count.
fn counts(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("//")
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &str =
        "//! Says hello.\n\nuse abide::greet;\n\n// Loudly.\nfn main() {\n    greet();\n}\n";

    fn tree(concepts: &str, prose: &str) -> Vec<File> {
        let mut files = vec![File::new(CONCEPTS, concepts), File::new(PAGE, prose)];
        for system in systems() {
            for (program, _) in PROGRAMS {
                files.push(File::new(system.path(program), HELLO));
            }
        }
        files
    }

    fn all_concepts() -> String {
        let lines = systems().flat_map(|system| {
            PROGRAMS.iter().map(move |(program, _)| format!("{} {program}: greet\n", system.folder))
        });
        lines.collect()
    }

    #[test]
    fn the_page_has_counts_and_programs_below_the_prose() {
        let prose = format!("# Comparison\n\nWords.\n{MARK}");
        let page = complete(&tree(&all_concepts(), &prose)).unwrap();
        assert!(page.starts_with(&prose));
        assert!(page.contains("| hello | 4 / 1 | 4 / 1 | 4 / 1 | 4 / 1 |\n"), "{page}");
        assert!(page.contains("**Abide**\n\n```rs\nuse abide::greet;\n\n// Loudly.\n"), "{page}");
        assert!(page.contains("**DBOS**\n\n```rs\nuse abide::greet;\n"), "{page}");
        assert!(!page.contains("Says hello"));
        // Written once more it stays as it is.
        let mut files = tree(&all_concepts(), &page);
        assert_eq!(complete(&files).unwrap(), page);
        assert!(super::super::check(&files).is_empty());
        files[1] = File::new(PAGE, page.replace("| 4 / 1 |\n", "| 3 / 1 |\n"));
        assert!(super::super::check(&files)[0].what.contains("does not show"));
    }

    #[test]
    fn a_concept_that_is_not_used_is_found() {
        let concepts = all_concepts().replace("dbos saga: greet", "dbos saga: greet shout");
        let found = complete(&tree(&concepts, MARK)).unwrap_err();
        assert_eq!(found[0].place, "comparison/dbos/src/bin/saga.rs");
        assert!(found[0].what.contains("`shout`"));
        assert!(complete(&tree("", MARK)).unwrap_err()[0].what.contains("has no line in"));
        assert!(complete(&tree("", "")).unwrap_err()[0].what.contains("has no line `<!--"));
    }
}
