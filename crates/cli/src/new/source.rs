//! Where a new project gets the crate `abide` from: a registry, or a folder with Abide's source.

use std::path::{Path, PathBuf};

use abide_command::Failed;
use serde_json::json;

/// Where the crate `abide` comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A published version.
    Version(&'static str),
    /// The folder of Abide's source.
    Folder(PathBuf),
}

/// The facade within Abide's source.
const FACADE: &str = "crates/abide";

/// What of Abide's source a project is built from.
const PARTS: [&str; 2] = ["Cargo.toml", "crates"];

/// The source that this program was built from, if it is still there.
pub(super) const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The published version that a project may name. There is none before the first release, and a project
/// that names one does not build.
pub(super) const PUBLISHED: Option<&str> = None;

impl Source {
    /// The source, if the user does not say: a version if there is a published one, else the source that this
    /// program was built from.
    pub(super) fn default_one(
        checkout: &Path,
        published: Option<&'static str>,
    ) -> Result<Self, Failed> {
        if let Some(version) = published {
            return Ok(Self::Version(version));
        }
        if checkout.join(FACADE).exists() {
            return Self::in_folder(checkout);
        }
        let version = env!("CARGO_PKG_VERSION");
        Err(Failed::usage(format_args!(
            "Abide {version} is not published, and its source is not where this program was built"
        ))
        .hint("name the folder of Abide's source: `abide new my-orders --path ../abide`"))
    }

    /// A folder with Abide's source.
    pub(super) fn in_folder(path: &Path) -> Result<Self, Failed> {
        let refused = |error: std::io::Error| {
            Failed::usage(format_args!("{} has no {FACADE}: {error}", path.display()))
                .hint("name the folder of Abide's source, the one with its README.md")
        };
        path.join(FACADE).canonicalize().map_err(refused)?;
        Ok(Self::Folder(path.canonicalize().map_err(refused)?))
    }

    /// How the project's Cargo.toml names the crate. TOML takes the escapes of JSON.
    pub(super) fn dependency(&self) -> String {
        match self {
            Self::Version(version) => format!("version = {}", json!(version)),
            Self::Folder(folder) => format!("path = {}", json!(folder.join(FACADE))),
        }
    }

    /// The option of `docker build` by which the image gets what Cargo.toml names, with a space.
    pub(super) fn build_option(&self) -> String {
        match self {
            Self::Version(_) => String::new(),
            Self::Folder(folder) => format!("--build-context abide={} ", shell_word(folder)),
        }
    }

    /// The lines of the Dockerfile that put Abide's source where Cargo.toml looks for it.
    pub(super) fn copies(&self) -> String {
        let Self::Folder(folder) = self else { return String::new() };
        let copy = |part| format!("COPY --from=abide {}\n", json!([part, folder.join(part)]));
        let why = "# Abide is not published yet: its source comes from the folder that Cargo.toml names.\n";
        std::iter::once(why.to_owned()).chain(PARTS.into_iter().map(copy)).collect()
    }
}

/// A path as one word of a shell.
fn shell_word(path: &Path) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let text = path.display().to_string();
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_names_the_published_crate_or_a_folder() {
        let (here, elsewhere) = (Path::new(CHECKOUT), Path::new("/"));
        let published = Source::default_one(here, Some("1.2.3")).unwrap();
        assert_eq!(published.dependency(), "version = \"1.2.3\"");
        assert_eq!((published.build_option(), published.copies()), (String::new(), String::new()));
        let found = Source::default_one(here, None).unwrap();
        let facade = found.dependency();
        assert!(
            facade.starts_with("path = \"/") && facade.ends_with("/crates/abide\""),
            "{facade}"
        );
        assert_eq!(Source::in_folder(here).unwrap(), found);
        assert!(Source::in_folder(elsewhere).is_err());
    }

    #[test]
    fn without_source_and_release_the_user_is_told_what_to_add() {
        let refused = Source::default_one(Path::new("/"), None).unwrap_err().to_string();
        assert!(refused.contains("is not published") && refused.contains("--path"), "{refused}");
    }

    #[test]
    fn an_image_gets_the_source_at_the_same_place() {
        let folder = Source::Folder("/src/my abide".into());
        assert_eq!(folder.build_option(), "--build-context abide='/src/my abide' ");
        let copies = folder.copies();
        let crates = "COPY --from=abide [\"crates\",\"/src/my abide/crates\"]\n";
        assert!(copies.ends_with(crates), "{copies}");
        assert!(folder.dependency().contains("/src/my abide/crates/abide"));
    }
}
