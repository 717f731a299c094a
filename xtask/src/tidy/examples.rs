//! Every example is introduced in the examples' README.

use std::collections::BTreeSet;

use crate::{
    files::{self, File},
    problem::Problem,
};

const FOLDER: &str = "examples/";

const README: &str = "examples/README.md";

/// Finds folders of examples that the README does not name.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    let readme = files::find(files, README).and_then(File::text).unwrap_or_default();
    let named: BTreeSet<&str> = readme.split(|c: char| !in_name(c)).collect();
    example_folders(files)
        .into_iter()
        .filter(|folder| !named.contains(folder))
        .map(|folder| {
            Problem::new(
                format!("{FOLDER}{folder}"),
                format!("is not named in {README}"),
                "add a line there that says what one idea it shows",
            )
        })
        .collect()
}

fn example_folders(files: &[File]) -> BTreeSet<&str> {
    let inside = files.iter().filter_map(|file| file.path.strip_prefix(FOLDER));
    inside.filter_map(|path| path.split_once('/')).map(|(folder, _)| folder).collect()
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '-' || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_without_introduction_is_found() {
        let files = [
            File::new("examples/README.md", "# Examples\n- [hello](hello): the smallest.\n"),
            File::new("examples/hello/src/main.rs", ""),
            File::new("examples/hello-again/src/main.rs", ""),
        ];
        let places: Vec<String> = check(&files).into_iter().map(|found| found.place).collect();
        assert_eq!(places, ["examples/hello-again"]);
    }

    #[test]
    fn a_missing_readme_names_nothing_and_no_examples_need_none() {
        assert_eq!(check(&[File::new("examples/hello/main.rs", "")]).len(), 1);
        assert!(check(&[]).is_empty());
    }
}
