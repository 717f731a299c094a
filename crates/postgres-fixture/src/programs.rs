//! Where PostgreSQL's programs are, and as whom they run: the server refuses to run as root.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The folder of the server's programs: from the path, else from where packages put them, the newest
/// version first.
pub(crate) fn folder() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    let packaged = versions.into_iter().map(|(_, folder)| folder);
    let built = [PathBuf::from("/usr/local/pgsql/bin")];
    env::split_paths(&path).chain(packaged).chain(built).find(|folder| complete(folder))
}

fn complete(folder: &Path) -> bool {
    ["initdb", "pg_ctl", "postgres", "psql"].iter().all(|program| folder.join(program).is_file())
}

/// The user that runs the server, if it cannot be this one: its name and number.
pub(crate) fn other_user() -> Option<(&'static str, u32)> {
    if number_of(None)? != 0 {
        return None;
    }
    ["postgres", "nobody"].into_iter().find_map(|name| Some((name, number_of(Some(name))?)))
}

fn number_of(user: Option<&str>) -> Option<u32> {
    let output = Command::new("id").arg("-u").args(user).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// A command that runs as that user.
pub(crate) fn command(program: impl AsRef<Path>, user: Option<(&str, u32)>) -> Command {
    match user {
        None => Command::new(program.as_ref()),
        Some((name, _)) => {
            let mut command = Command::new("setpriv");
            let ids = [format!("--reuid={name}"), "--clear-groups".to_owned()];
            command.args(ids).arg("--").arg(program.as_ref());
            command
        }
    }
}
