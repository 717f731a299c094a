//! Finds PostgreSQL's programs, and the user to run them as: the server refuses to run as root.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Programs that tests need.
const NEEDED: [&str; 5] = ["initdb", "pg_basebackup", "pg_ctl", "postgres", "psql"];

/// Variable that names the folder of the programs. It takes precedence over all other places.
const VARIABLE: &str = "PG_BIN";

/// Folders where packages install each version: parent folder, prefix of its entries, and suffix.
const PACKAGED: [(&str, &str, &str); 5] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/opt/homebrew/opt", "postgresql@", "bin"),
    ("/usr/local/opt", "postgresql@", "bin"),
    ("/Library/PostgreSQL", "", "bin"),
];

/// Default folder of an installation from source.
const BUILT: &str = "/usr/local/pgsql/bin";

/// All places that are searched, for error messages.
pub(crate) const PLACES: &str = "PG_BIN, PATH, /usr/lib/postgresql/*/bin, /usr/pgsql-*/bin, Homebrew's \
    folders, /usr/local/pgsql/bin and the target folder";

/// Finds the folder of the server's programs: `PG_BIN`, then `PATH`, then package folders with the
/// newest version first, then a copy that was installed for tests.
pub fn folder() -> Option<PathBuf> {
    let named = env::var_os(VARIABLE).map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let packaged = PACKAGED.iter().flat_map(|(folder, prefix, rest)| {
        versions(Path::new(folder), prefix).into_iter().map(move |version| version.join(rest))
    });
    named
        .into_iter()
        .chain(env::split_paths(&path))
        .chain(packaged)
        .chain([PathBuf::from(BUILT)])
        .chain(installed_for_tests())
        .find(|folder| complete(folder))
}

/// Whether the folder has all programs that tests need.
pub(crate) fn complete(folder: &Path) -> bool {
    NEEDED.iter().all(|program| folder.join(program).is_file())
}

/// Entries named `prefix` followed by a version, newest first.
fn versions(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let version = |path: &PathBuf| -> Option<u32> {
        path.file_name()?.to_str()?.strip_prefix(prefix)?.parse().ok()
    };
    let mut found: Vec<_> =
        entries(folder).filter_map(|path| Some((version(&path)?, path))).collect();
    found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    found.into_iter().map(|(_, path)| path).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Folder for programs that are installed only for tests: the target folder that this program runs
/// from.
pub(crate) fn target_folder() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let is_target = |folder: &&Path| folder.join("CACHEDIR.TAG").is_file();
    Some(program.ancestors().find(is_target)?.join("postgresql"))
}

/// Program folders in the target folder. The package keeps each version in its own folder.
fn installed_for_tests() -> impl Iterator<Item = PathBuf> {
    let mut versions: Vec<_> = target_folder()
        .into_iter()
        .flat_map(|folder| entries(&folder).collect::<Vec<_>>())
        .flat_map(|package| entries(&package).collect::<Vec<_>>())
        .map(|version| version.join("bin"))
        .collect();
    versions.sort();
    versions.into_iter().rev()
}

/// Name and id of the user to run the server as, if this process runs as root.
pub(crate) fn other_user() -> Option<(&'static str, u32)> {
    if !is_root() {
        return None;
    }
    ["postgres", "nobody"].into_iter().find_map(|name| Some((name, number_of(Some(name))?)))
}

/// Whether this process runs as root, as which the server refuses to run.
pub(crate) fn is_root() -> bool {
    number_of(None) == Some(0)
}

fn number_of(user: Option<&str>) -> Option<u32> {
    let output = Command::new("id").arg("-u").args(user).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Command prefix that switches to that user.
pub(crate) fn prefix(user: Option<(&str, u32)>) -> Vec<String> {
    user.map_or_else(Vec::new, |(name, _)| {
        let words = ["setpriv", &format!("--reuid={name}"), "--clear-groups", "--"];
        words.map(str::to_owned).to_vec()
    })
}

pub(crate) fn command(words: &[String]) -> Command {
    let mut command = Command::new(words.first().map_or("true", String::as_str));
    command.args(words.iter().skip(1));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_comes_first_and_other_folders_do_not_count() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["9", "15", "pgsql-16", "16-old", "100"] {
            fs::create_dir(folder.path().join(name)).expect("a folder in it");
        }
        let found = |prefix| -> Vec<_> {
            let names = versions(folder.path(), prefix).into_iter();
            names.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
        };
        assert_eq!(found(""), ["100", "15", "9"]);
        assert_eq!(found("pgsql-"), ["pgsql-16"]);
        assert!(versions(Path::new("/nowhere"), "").is_empty());
    }

    #[test]
    fn a_folder_counts_if_it_has_all_programs() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for program in NEEDED {
            assert!(!complete(folder.path()), "without {program}");
            fs::write(folder.path().join(program), "").expect("a program");
        }
        assert!(complete(folder.path()));
    }
}
