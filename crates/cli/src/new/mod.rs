//! `abide new`: a project with a workflow, a worker, tests and a Dockerfile, which runs as it is.
//!
//! `template` is that project, called `my-orders`; `name` says what else it may be called, `source` where it gets
//! Abide from.

mod name;
mod source;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use abide_command::{Common, Failed};
use clap::Args;
use serde_json::json;

use self::{
    name::Name,
    source::{CHECKOUT, PUBLISHED, Source},
};

/// Create a project with a workflow, a worker, tests and a Dockerfile
#[derive(Args)]
#[command(after_help = "Example:
  abide new my-orders && cd my-orders && cargo test && cargo run
  abide new my-orders --path ../abide")]
pub(crate) struct New {
    /// Folder to create; its last part is the name of the project
    #[arg(value_name = "NAME")]
    folder: PathBuf,
    /// Folder of Abide's source; by default the one that this program was built from
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
}

/// What a file of the project is called there, and what is in it.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("template/Cargo.toml.txt")),
    (".cargo/config.toml", include_str!("template/cargo-config.toml.txt")),
    (".dockerignore", include_str!("template/dockerignore.txt")),
    (".gitignore", include_str!("template/gitignore.txt")),
    ("Dockerfile", include_str!("template/Dockerfile.txt")),
    ("README.md", include_str!("template/README.md.txt")),
    ("src/lib.rs", include_str!("template/src/lib.rs")),
    ("src/main.rs", include_str!("template/src/main.rs")),
    ("tests/order.rs", include_str!("template/tests/order.rs")),
];

impl New {
    pub(crate) fn run(self, common: &Common) -> Result<(), Failed> {
        let name = Name::of_folder(&self.folder)?;
        let source = match self.path {
            Some(path) => Source::in_folder(&path)?,
            None => Source::default_one(Path::new(CHECKOUT), PUBLISHED)?,
        };
        create(&self.folder)?;
        for (path, text) in FILES {
            write(&self.folder.join(path), &fill_in(text, &name, &source))?;
        }
        let folder = self.folder.display().to_string();
        let hint = format!("Created {folder}. Try it:\n\n  cd {folder}\n  cargo test\n  cargo run");
        common.output().say_lines(&json!({ "name": name.package, "folder": folder }), hint)
    }
}

fn create(folder: &Path) -> Result<(), Failed> {
    fs::create_dir_all(folder.parent().unwrap_or(folder))
        .map_err(|error| refused(folder, &error))?;
    fs::create_dir(folder).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failed::usage(format_args!("{} exists already", folder.display()))
                .hint("choose another name, or remove the folder")
        }
        _ => refused(folder, &error),
    })
}

fn write(path: &Path, text: &str) -> Result<(), Failed> {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &io::Error) -> Failed {
    Failed::refused(format_args!("cannot write {}: {error}", path.display()))
}

fn fill_in(text: &str, name: &Name, source: &Source) -> String {
    text.replace("my-orders", &name.package)
        .replace("my_orders", &name.library)
        .replace("ABIDE_SOURCE", &source.dependency())
        .replace("ABIDE_BUILD_OPTION ", &source.build_option())
        .replace("# ABIDE_COPIES\n", &source.copies())
        .replace("RUST_VERSION", env!("CARGO_PKG_RUST_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project has no Cargo.lock until its first build, which may be that of the image.
    #[test]
    fn the_image_can_be_built_without_a_lock_file() {
        let file = include_str!("template/Dockerfile.txt");
        let build = file.lines().find(|line| line.starts_with("RUN") && line.contains("cargo"));
        let build = build.unwrap();
        assert!(build.contains("if [ -f Cargo.lock ]"), "{build}");
        assert!(build.contains("else cargo build --release;"), "{build}");
        assert!(file.contains("COPY --from=build /build/target/release/my-orders "));
    }

    /// Rustfmt sorts the imports of a group, and the name of the project may stand anywhere among them.
    #[test]
    fn the_import_of_the_project_is_a_group_alone() {
        let imports = |text: &str| text.matches("\nuse my_orders::").count();
        let groups = |text: &str| text.matches("\n\nuse my_orders::").count();
        let counted = |count: &dyn Fn(&str) -> usize| -> usize {
            FILES.iter().map(|(_, text)| count(text)).sum()
        };
        assert_eq!((counted(&imports), counted(&groups)), (2, 2));
    }

    #[test]
    fn nothing_of_the_template_is_left() {
        let name = Name::of_folder(Path::new("shop-floor")).unwrap();
        let source = Source::Version("9");
        let filled: String = FILES.iter().map(|(_, text)| fill_in(text, &name, &source)).collect();
        for left in [
            "my-orders",
            "my_orders",
            "ABIDE_SOURCE",
            "ABIDE_BUILD",
            "ABIDE_COPIES",
            "RUST_VERSION",
        ] {
            assert!(!filled.contains(left), "{left}");
        }
        assert!(filled.contains("name = \"shop-floor\"") && filled.contains("use shop_floor::{"));
    }
}
