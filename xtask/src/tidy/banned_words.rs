//! Words that do not belong in the tree, each with an alternative: notes to do something later,
//! numbered plans, paths of one machine, and terms of other systems for which we have our own.

use crate::{files::File, problem::Problem};

/// Where a rule applies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// In every text file.
    Everywhere,
    /// In all crates except the gateways, which translate foreign terms.
    OwnVocabulary,
}

/// How a word is found in a line.
#[derive(Clone, Copy)]
enum Pattern {
    /// Exactly this word.
    Word(&'static str),
    /// Anywhere, ignoring case.
    Part(&'static str),
    /// The word followed by a number, ignoring case.
    Numbered(&'static str),
    /// The start of an absolute path.
    Path(&'static str),
}

struct Rule {
    scope: Scope,
    patterns: &'static [Pattern],
    fix: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        scope: Scope::Everywhere,
        patterns: &[
            Pattern::Word("FIXME"),
            Pattern::Word("TODO"),
            Pattern::Word("XXX"),
            Pattern::Part("todo!("),
            Pattern::Part("unimplemented!("),
        ],
        fix: "do it now, or return an error that says it is not supported",
    },
    Rule {
        scope: Scope::Everywhere,
        patterns: &[
            Pattern::Numbered("phase"),
            Pattern::Numbered("milestone"),
            Pattern::Numbered("sprint"),
        ],
        fix: "say what the code does, not when it was planned",
    },
    Rule {
        scope: Scope::Everywhere,
        patterns: &[Pattern::Path("/work/"), Pattern::Path("/root/"), Pattern::Path("/home/")],
        fix: "use a path relative to the root of the repository",
    },
    Rule {
        scope: Scope::OwnVocabulary,
        patterns: &[Pattern::Part("orchestration")],
        fix: "say workflow, or run for one execution of it",
    },
    Rule {
        scope: Scope::OwnVocabulary,
        patterns: &[Pattern::Word("WFT")],
        fix: "say workflow task",
    },
    Rule {
        scope: Scope::OwnVocabulary,
        patterns: &[Pattern::Part("journal")],
        fix: "say history for the events of a run, log for their storage",
    },
    Rule {
        scope: Scope::OwnVocabulary,
        patterns: &[
            Pattern::Part("instance id"),
            Pattern::Part("instance_id"),
            Pattern::Part("instanceid"),
        ],
        fix: "say workflow id, or run id for one execution",
    },
];

/// Paths in which a word is allowed; `None` stands for every word.
const EXCEPTIONS: &[(&str, Option<&str>)] = &[
    // Names the words in order to find them.
    ("xtask/src/tidy/banned_words.rs", None),
    // Names the words in order to forbid them.
    ("STYLE.md", None),
    // Durable Task's own term, in the table that maps its names to ours.
    ("crates/core/tests/mapping.md", Some("orchestration")),
    // SQLite's own term, as in `PRAGMA journal_mode`.
    ("crates/store-sqlite/", Some("journal")),
    ("crates/sqlite-disk/", Some("journal")),
];

/// Finds banned words in text files.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files {
        for (index, line) in file.text().unwrap_or_default().lines().enumerate() {
            for (word, fix) in banned_in(&file.path, line) {
                let place = format!("{}:{}", file.path, index + 1);
                problems.push(Problem::new(place, format!("contains `{word}`"), fix));
            }
        }
    }
    problems
}

fn banned_in(path: &str, line: &str) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    for rule in RULES.iter().filter(|rule| applies(rule.scope, path)) {
        for pattern in rule.patterns {
            let word = pattern.word();
            if pattern.matches(line) && !excepted(path, word) {
                found.push((word, rule.fix));
            }
        }
    }
    found
}

fn applies(scope: Scope, path: &str) -> bool {
    match scope {
        Scope::Everywhere => true,
        Scope::OwnVocabulary => path.starts_with("crates/") && !path.starts_with("crates/gateway-"),
    }
}

fn excepted(path: &str, word: &str) -> bool {
    EXCEPTIONS.iter().any(|(prefix, allowed)| {
        path.starts_with(prefix) && allowed.is_none_or(|allowed| allowed == word)
    })
}

impl Pattern {
    fn word(self) -> &'static str {
        match self {
            Self::Word(word) | Self::Part(word) | Self::Numbered(word) | Self::Path(word) => word,
        }
    }

    fn matches(self, line: &str) -> bool {
        match self {
            Self::Word(word) => sides(line, word)
                .any(|(before, after)| !before.ends_with(in_word) && !after.starts_with(in_word)),
            Self::Part(word) => line.to_lowercase().contains(word),
            Self::Numbered(word) => sides(&line.to_lowercase(), word).any(|(before, after)| {
                let number = after.strip_prefix([' ', '-', '_']).unwrap_or(after);
                !before.ends_with(in_word) && number.starts_with(|c: char| c.is_ascii_digit())
            }),
            Self::Path(word) => sides(line, word)
                .any(|(before, _)| !before.ends_with(|c| in_word(c) || "-.*".contains(c))),
        }
    }
}

/// Text before and after each occurrence of `word`.
fn sides<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    line.match_indices(word).map(move |(at, _)| (&line[..at], &line[at + word.len()..]))
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(path: &str, line: &str) -> Vec<&'static str> {
        banned_in(path, line).into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn a_finding_names_the_line_and_the_replacement() {
        let found = check(&[File::new("crates/core/src/a.rs", "//! Fine.\n// One WFT.\n")]);
        assert_eq!(
            found[0].to_string(),
            "crates/core/src/a.rs:2: contains `WFT`\n  fix: say workflow task"
        );
    }

    #[test]
    fn notes_for_later_are_found() {
        assert_eq!(words("a.md", "a TODO: b"), ["TODO"]);
        assert_eq!(words("a.rs", "    todo!()"), ["todo!("]);
        assert_eq!(words("a.rs", "    unimplemented!(\"x\")"), ["unimplemented!("]);
        assert!(words("a.rs", "METHODOLOGY, XXXL, what to do").is_empty());
    }

    #[test]
    fn plans_with_numbers_are_found() {
        assert_eq!(words("a.md", "In Phase 1 we"), ["phase"]);
        assert_eq!(words("a.md", "milestone-2"), ["milestone"]);
        assert!(words("a.md", "a phase of the moon; two-phase commit").is_empty());
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        assert_eq!(words("a.md", "see `/home/me/abide`"), ["/home/"]);
        assert_eq!(words("a.md", "/work/x"), ["/work/"]);
        assert!(words("a.md", "docs/home/index.md and ../work/x").is_empty());
    }

    #[test]
    fn foreign_words_stay_in_gateways() {
        assert_eq!(words("crates/core/src/a.rs", "struct OrchestrationId"), ["orchestration"]);
        assert_eq!(words("crates/core/src/a.rs", "an instance id"), ["instance id"]);
        assert!(words("crates/gateway-durabletask/src/a.rs", "orchestration").is_empty());
        assert!(words("docs/a.md", "a journal").is_empty());
    }

    #[test]
    fn exceptions_hold_only_for_their_word() {
        let path = "crates/store-sqlite/src/open.rs";
        assert!(words(path, "PRAGMA journal_mode = WAL").is_empty());
        assert_eq!(words(path, "orchestration"), ["orchestration"]);
    }
}
