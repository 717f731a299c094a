//! Every Rust file starts with a module doc.

use crate::{files::File, problem::Problem};

/// Finds files without a module doc on their first line.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    files
        .iter()
        .filter(|file| file.written_rust())
        .filter(|file| !file.text().is_some_and(|text| text.starts_with("//!")))
        .map(|file| {
            Problem::new(
                &file.path,
                "does not begin with a module doc",
                "begin with `//!` and say in a few sentences what the file is for",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_module_doc_is_found() {
        let files = [
            File::new("crates/a/src/good.rs", "//! Good.\n"),
            File::new("crates/a/src/bad.rs", "use std::fmt;\n//! Too late.\n"),
            File::new("crates/core/src/codec/generated.rs", "struct Wire;\n"),
            File::new("notes.md", "# Notes\n"),
        ];
        let places: Vec<String> = check(&files).into_iter().map(|found| found.place).collect();
        assert_eq!(places, ["crates/a/src/bad.rs"]);
    }
}
