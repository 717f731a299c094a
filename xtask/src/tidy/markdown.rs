//! Each markdown file has one title, and its links to files of the tree and to their headings are valid.

use std::collections::{BTreeMap, BTreeSet};

use crate::{files::File, problem::Problem};

/// Finds wrong numbers of titles and broken links.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    let known = known_paths(files);
    let pages = files.iter().filter(|file| file.path.ends_with(".md"));
    let headings: BTreeMap<&str, BTreeSet<String>> =
        pages.map(|page| (&*page.path, headings(page.text().unwrap_or_default()))).collect();
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let prose = prose(file.text().unwrap_or_default());
        problems.extend(check_title(&file.path, &prose));
        for (number, line) in &prose {
            let place = || format!("{}:{number}", file.path);
            for Link { path, heading } in relative_links(line) {
                let page = if path.is_empty() {
                    Some(file.path.clone())
                } else {
                    resolve(&file.path, path).filter(|page| known.contains(page))
                };
                let Some(page) = page else {
                    problems.push(Problem::new(
                        place(),
                        format!("the link `{path}` leads nowhere"),
                        "link to a file of this tree, relative to the linking file",
                    ));
                    continue;
                };
                let there = headings.get(&*page);
                if there.is_some_and(|there| !heading.is_empty() && !there.contains(heading)) {
                    problems.push(Problem::new(
                        place(),
                        format!("{page} has no heading for the link `{path}#{heading}`"),
                        "name a heading in small letters, with a hyphen for each space",
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

/// What the headings of a page are called in links.
fn headings(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title == line || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let name = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let numbered = (1..).map(|number| format!("{name}-{number}"));
        found.extend([name.clone()].into_iter().chain(numbered).find(|name| !found.contains(name)));
    }
    found
}

/// Where a link leads within the tree: to a path, which may be empty, and a heading, which may be too.
struct Link<'a> {
    path: &'a str,
    heading: &'a str,
}

/// Targets of `[text](target)` and `[label]: target` that are in the tree.
fn relative_links(line: &str) -> Vec<Link<'_>> {
    // Every second piece is inline code. Code in a link's text splits the link in two, and the
    // second half still contains `](`.
    let pieces = line.split('`').step_by(2);
    let inline = pieces.flat_map(|piece| piece.split("](").skip(1));
    let targets = inline.map(|rest| rest.split(')').next().unwrap_or(rest));
    targets
        .chain(reference_target(line))
        .filter_map(|target| target.split(' ').next())
        .filter(|target| !target.is_empty() && !target.contains(':'))
        .map(|target| target.split_once('#').unwrap_or((target, "")))
        .map(|(path, heading)| Link { path, heading })
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
    fn links_to_headings_pass() {
        let text = "# T\n[a](#a-b-and-c) [b](page.md#a-b-and-c-1)\n## A `b`, and C\n## A b and c\n";
        assert!(check_text(text).is_empty(), "{:?}", check_text(text));
    }

    #[test]
    fn links_to_headings_that_are_not_there_are_found() {
        let found =
            check_text("# T\n[a](#part) [b](page.md#t) [c](page.md#t-1)\n```\n# part\n```\n");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0]
                .starts_with("docs/page.md:2: docs/page.md has no heading for the link `#part`")
        );
        assert!(found[1].contains("`page.md#t-1`"));
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
