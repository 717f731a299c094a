//! `cargo xtask dist`: the archives of a release, in `target/dist`: one for each platform with the stripped
//! binary, how to run it, and the licences of everything in it; and their checksums.
//!
//! A build for another platform needs Rust's standard library for it and a C cross-compiler, because SQLite is
//! written in C. The binary of each platform is run before it is packed, by an emulator if necessary.

mod licences;
mod platform;

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use self::platform::Platform;
use crate::{
    output,
    problem::Problem,
    tidy::dependencies::graph::Graph,
    workspace::{self, Workspace},
};

const PACKAGE: &str = "abide-cli";

/// Files of the tree that an archive holds, and what they are called there.
const FILES: &[(&str, &str)] = &[
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("LICENSE", "LICENSE"),
    ("packaging/Dockerfile", "Dockerfile"),
    ("packaging/abide.service", "abide.service"),
];

const CHECKSUMS: &str = "SHA256SUMS";

/// What all archives of a release share.
struct Release {
    root: PathBuf,
    /// Where cargo puts what it builds.
    target: PathBuf,
    folder: PathBuf,
    version: String,
    /// The commit, and when it was made.
    commit: String,
    committed_at: String,
    licences: String,
}

/// Builds the archives for these targets, or for all.
pub(crate) fn run(options: &[&str]) -> Result<(), Vec<Problem>> {
    let platforms = platform::chosen(options)?;
    let release = Release::prepare()?;
    verify_unit(&release)?;
    let mut archives = Vec::new();
    for platform in platforms {
        output::line(&format!("\n==> {}", platform.target));
        archives.push(release.archive(platform)?);
    }
    release.write_checksums(&archives)?;
    for archive in archives {
        output::line(&format!("dist: {}", release.folder.join(archive).display()));
    }
    Ok(())
}

impl Release {
    fn prepare() -> Result<Self, Problem> {
        let workspace = Workspace::load()?;
        let version = workspace.package(PACKAGE).map(|package| package.version.clone());
        let folder = workspace.target.join("dist");
        fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
        Ok(Self {
            version: version.unwrap_or_default(),
            commit: commit()?,
            committed_at: git(&["log", "-1", "--format=%ct"])?,
            licences: licences::list(&Graph::load()?.linked_into(PACKAGE))?,
            root: workspace.root,
            target: workspace.target,
            folder,
        })
    }

    /// Builds, tries and packs the binary; returns the name of the archive.
    fn archive(&self, platform: &Platform) -> Result<String, Problem> {
        let binary = self.build(platform)?;
        self.try_out(platform, &binary)?;
        let name = format!("abide-{}-{}", self.version, platform.target);
        let staged = self.folder.join(&name);
        self.stage(&staged, &binary).map_err(|error| unwritable(&staged, &error))?;
        let archive = format!("{name}.tar.gz");
        // The same commit gives the same bytes: sorted, without an owner, at the commit's time.
        let mut tar = Command::new("tar");
        tar.current_dir(&self.folder)
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
            .arg(format!("--mtime=@{}", self.committed_at))
            .args(["--use-compress-program=gzip -9 -n", "--create", "--file", &archive, &name]);
        perform(&mut tar, "install GNU tar and gzip")?;
        Ok(archive)
    }

    /// What the binary calls its version.
    fn stamp(&self) -> String {
        format!("{} ({})", self.version, self.commit)
    }

    fn build(&self, platform: &Platform) -> Result<PathBuf, Problem> {
        let mut cargo = workspace::cargo();
        cargo.args(["build", "--profile", "dist", "--locked", "--package", PACKAGE]);
        cargo.args(["--target", platform.target]).env("ABIDE_VERSION", self.stamp());
        for (variable, value) in platform.cross_compiler() {
            cargo.env(variable, value);
        }
        perform(&mut cargo, platform.advice)?;
        Ok(self.target.join(platform.target).join("dist/abide"))
    }

    /// A binary that cannot say its version is not shipped.
    fn try_out(&self, platform: &Platform, binary: &Path) -> Result<(), Problem> {
        let mut command = platform.runner(binary);
        let said = command.arg("--version").output().map_err(|error| {
            Problem::new(describe(&command), format!("cannot start: {error}"), platform.advice)
        })?;
        let said = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        let expected = format!("abide {}", self.stamp());
        output::line(&format!("{}: {said}", platform.target));
        if said == expected {
            return Ok(());
        }
        let what = format!("says `{said}` instead of `{expected}`");
        Err(Problem::new(binary.display().to_string(), what, "look at what it prints when run"))
    }

    fn stage(&self, staged: &Path, binary: &Path) -> std::io::Result<()> {
        if staged.exists() {
            fs::remove_dir_all(staged)?;
        }
        fs::create_dir(staged)?;
        fs::copy(binary, staged.join("abide"))?;
        for (from, to) in FILES {
            fs::copy(self.root.join(from), staged.join(to))?;
        }
        fs::write(staged.join("LICENSES-THIRD-PARTY.txt"), &self.licences)
    }

    /// The archives of this version that were built by earlier calls stay in the list.
    fn write_checksums(&self, archives: &[String]) -> Result<(), Problem> {
        let listed =
            fs::read_dir(&self.folder).map_err(|error| unwritable(&self.folder, &error))?;
        let names = listed.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let of_version = format!("abide-{}-", self.version);
        let own = |name: &String| name.starts_with(&of_version) && name.ends_with(".tar.gz");
        let all: BTreeSet<String> = names.filter(own).chain(archives.iter().cloned()).collect();
        let mut command = Command::new("sha256sum");
        let output = command.current_dir(&self.folder).args(&all).output();
        let output = output.map_err(|error| {
            Problem::new("sha256sum", error.to_string(), "install the package coreutils")
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Problem::new(describe(&command), said, "read what it says, and repeat"));
        }
        let file = self.folder.join(CHECKSUMS);
        fs::write(&file, output.stdout).map_err(|error| unwritable(&file, &error))
    }
}

/// The commit that is built, and whether the tree differs from it.
fn commit() -> Result<String, Problem> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Ok(if changed { format!("{commit}, changed") } else { commit })
}

/// Lets systemd check its unit, with a program that exists here in place of the installed one.
fn verify_unit(release: &Release) -> Result<(), Problem> {
    let (from, copy) =
        (release.root.join("packaging/abide.service"), release.folder.join("abide.service"));
    let unit = fs::read_to_string(&from).map_err(|error| unwritable(&from, &error))?;
    let here = unit.replace("/usr/local/bin/abide", "/bin/true");
    fs::write(&copy, here).map_err(|error| unwritable(&copy, &error))?;
    let mut verify = Command::new("systemd-analyze");
    verify.arg("verify").arg(&copy);
    let verified = match Command::new("systemd-analyze").arg("--version").output() {
        Ok(_) => perform(&mut verify, "correct packaging/abide.service"),
        Err(_) => {
            output::line(
                "dist: the unit of systemd is NOT verified: there is no systemd-analyze here",
            );
            Ok(())
        }
    };
    fs::remove_file(&copy).map_err(|error| unwritable(&copy, &error))?;
    verified
}

fn git(arguments: &[&str]) -> Result<String, Problem> {
    let output = Command::new("git").args(arguments).output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => Err(no_commit(&String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(no_commit(&error.to_string())),
    }
}

fn no_commit(reason: &str) -> Problem {
    Problem::new("git", reason.trim(), "build a release in a clone of the repository")
}

fn perform(command: &mut Command, fix: &str) -> Result<(), Problem> {
    let why = match command.status() {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => format!("failed with {status}"),
        Err(error) => format!("cannot start: {error}"),
    };
    Err(Problem::new(describe(command), why, fix))
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

fn unwritable(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(path.display().to_string(), error.to_string(), "make the folder writable")
}
