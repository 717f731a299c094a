//! Each markdown file has one title, and its links to other files of the tree are valid.

use std::collections::BTreeSet;

use crate::{files::File, problem::Problem};

/// Finds wrong numbers of titles and broken links.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    let known = known_paths(files);
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let prose = prose(file.text().unwrap_or_default());
        problems.extend(check_title(&file.path, &prose));
        for (number, line) in &prose {
            for target in relative_links(line) {
                if !resolve(&file.path, target).is_some_and(|path| known.contains(&path)) {
                    problems.push(Problem::new(
                        format!("{}:{number}", file.path),
                        format!("the link `{target}` leads nowhere"),
                        "link to a file of this tree, relative to the linking file",
                    ));
                }
            }
        }
    }
    problems
}

fn check_title(path: &str, prose: &[(usize, &str)]) -> Option<Problem> {
    let count = prose.iter().filter(|(_, line)| line.starts_with("# ")).count();
    (count != 1).then(|| {
        let what = format!("has {count} titles");
        Problem::new(
            path,
            what,
            "give it one line that begins with `# `; sections begin with `## `",
        )
    })
}

/// Numbered lines outside of fenced code.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        if fence {
            fenced = !fenced;
        } else if !fenced {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// Targets of `[text](target)` and `[label]: target` that are paths, without their anchors.
fn relative_links(line: &str) -> Vec<&str> {
    // Every second piece is inline code. Code in a link's text splits the link in two, and the
    // second half still contains `](`.
    let pieces = line.split('`').step_by(2);
    let inline = pieces.flat_map(|piece| piece.split("](").skip(1));
    let targets = inline.map(|rest| rest.split(')').next().unwrap_or(rest));
    targets
        .chain(reference_target(line))
        .filter_map(|target| target.split([' ', '#']).next())
        .filter(|path| !path.is_empty() && !path.contains(':'))
        .collect()
}

fn reference_target(line: &str) -> Option<&str> {
    let (label, target) = line.strip_prefix('[')?.split_once("]: ")?;
    (!label.contains(']')).then_some(target)
}

/// Path that a link points to, relative to the root; `None` outside the tree.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// All files, and all folders that contain one; the root is the empty path.
fn known_paths(files: &[File]) -> BTreeSet<String> {
    let mut known = BTreeSet::from([String::new()]);
    for file in files {
        known.insert(file.path.clone());
        for (at, _) in file.path.match_indices('/') {
            known.insert(file.path[..at].to_owned());
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str) -> Vec<String> {
        let files = [File::new("docs/page.md", text), File::new("docs/deep/other.txt", "")];
        check(&files).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn one_title_passes() {
        assert!(check_text("# Title\n\n## Part\n\n```\n# a comment\n```\n").is_empty());
    }

    #[test]
    fn no_title_and_two_titles_are_found() {
        assert!(check_text("## Part\n")[0].contains("has 0 titles"));
        assert!(check_text("# One\n# Two\n")[0].contains("has 2 titles"));
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let text = "# T\n[a](deep/other.txt#part) [b](deep/) [c](#t) [d](https://example.com/x)\n\
                    [`e`](../docs/page.md) `[f](not/a/link)`\n[g]: deep/other.txt\n";
        assert!(check_text(text).is_empty(), "{:?}", check_text(text));
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let found = check_text("# T\n[a](gone.md) and [b](deep/gone.txt)\n[c]: gone\n");
        assert_eq!(found.len(), 3);
        assert!(found[0].starts_with("docs/page.md:2: the link `gone.md` leads nowhere"));
        assert!(check_text("# T\n[a](../../outside.md)\n")[0].contains("leads nowhere"));
        assert!(check_text("# T\n[`a`](gone.md)\n")[0].contains("leads nowhere"));
    }
}
