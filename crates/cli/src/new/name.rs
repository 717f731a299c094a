//! The name of a project: that of its package, and that of its library in Rust code.

use std::path::Path;

use abide_command::Failed;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) package: String,
    pub(super) library: String,
}

/// Longer names make file names that some systems refuse.
const LENGTH_MAX: usize = 64;

/// Names of crates that the project uses, and of Rust's own.
const TAKEN: &[&str] = &["abide", "alloc", "anyhow", "core", "proc_macro", "std", "test", "tokio"];

/// Words of the language, also those that it only reserves.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

impl Name {
    /// The name of a project in this folder.
    pub(super) fn of_folder(folder: &Path) -> Result<Self, Failed> {
        let package = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let library = package.replace('-', "_");
        let refuse = |why: &str| {
            Err(Failed::usage(format_args!("{package:?} cannot be the name of a project: {why}"))
                .hint("use small letters, digits and hyphens, as in `abide new my-orders`"))
        };
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        if package.len() > LENGTH_MAX {
            return refuse(&format!("it is longer than {LENGTH_MAX} characters"));
        }
        if !package.starts_with(|c: char| c.is_ascii_lowercase()) {
            return refuse("it must begin with a small letter");
        }
        if let Some(wrong) = package.chars().find(|c| !allowed(*c)) {
            return refuse(&format!("it contains {wrong:?}"));
        }
        if KEYWORDS.contains(&library.as_str()) {
            return refuse("it is a word of the Rust language");
        }
        if TAKEN.contains(&library.as_str()) {
            return refuse("a crate that it uses has this name");
        }
        Ok(Self { package, library })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(folder: &str) -> Result<String, String> {
        let name = Name::of_folder(Path::new(folder)).map_err(|failed| failed.to_string())?;
        Ok(format!("{} {}", name.package, name.library))
    }

    #[test]
    fn the_last_part_of_the_folder_is_the_name() {
        assert_eq!(check("my-orders").unwrap(), "my-orders my_orders");
        assert_eq!(check("some where/Else/a_b2").unwrap(), "a_b2 a_b2");
        assert_eq!(check("orders/").unwrap(), "orders orders");
    }

    #[test]
    fn a_name_that_cargo_or_rust_would_refuse_is_refused_with_its_reason() {
        for (folder, why) in [
            ("", "begin with a small letter"),
            ("..", "begin with a small letter"),
            ("2orders", "begin with a small letter"),
            ("orders\"\n", "contains '\"'"),
            ("match", "a word of the Rust language"),
            ("proc-macro", "a crate that it uses"),
            ("abide", "a crate that it uses"),
        ] {
            let refused = check(folder).unwrap_err();
            assert!(refused.contains(why), "{folder:?}: {refused}");
        }
        assert!(check(&"a".repeat(65)).unwrap_err().contains("longer than 64"));
    }
}
