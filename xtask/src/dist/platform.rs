//! The platforms of a release, and what it takes to build and run a binary of each.

use std::{path::Path, process::Command};

use crate::problem::Problem;

/// A platform that has an archive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Platform {
    /// Rust's name for it.
    pub(super) target: &'static str,
    /// Begins the names of the C compiler and linker, where they are not those of this machine.
    cross: &'static str,
    /// Runs its binaries on other machines.
    emulator: &'static str,
    /// What is probably missing if its build fails.
    pub(super) advice: &'static str,
}

const PLATFORMS: &[Platform] = &[
    Platform {
        target: "x86_64-unknown-linux-gnu",
        cross: "x86_64-linux-gnu-",
        emulator: "qemu-x86_64",
        advice: "rustup target add x86_64-unknown-linux-gnu; on other machines also the packages \
                 gcc-x86-64-linux-gnu, libc6-dev-amd64-cross and qemu-user",
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        cross: "aarch64-linux-gnu-",
        emulator: "qemu-aarch64",
        advice: "rustup target add aarch64-unknown-linux-gnu; on other machines also the packages \
                 gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user",
    },
];

/// All platforms, or the one of `--target`.
pub(super) fn chosen(options: &[&str]) -> Result<&'static [Platform], Problem> {
    let targets = || PLATFORMS.iter().map(|platform| platform.target).collect::<Vec<_>>();
    let refused = |what: String| {
        let fix =
            format!("`--target` takes one of {}; without it all are built", targets().join(", "));
        Problem::new("cargo xtask dist", what, fix)
    };
    match options {
        [] => Ok(PLATFORMS),
        ["--target", target] => {
            let found = PLATFORMS.iter().position(|platform| platform.target == *target);
            let at = found.ok_or_else(|| refused(format!("does not build for `{target}`")))?;
            Ok(&PLATFORMS[at..=at])
        }
        _ => Err(refused(format!("does not understand `{}`", options.join(" ")))),
    }
}

impl Platform {
    /// Whether this machine runs the binaries itself.
    fn native(&self) -> bool {
        self.target.starts_with(std::env::consts::ARCH) && std::env::consts::OS == "linux"
    }

    /// Variables that name compiler and linker to cargo and to the crates that compile C.
    pub(super) fn cross_compiler(&self) -> Vec<(String, String)> {
        if self.native() {
            return Vec::new();
        }
        let name = self.target.replace('-', "_");
        let tool = |tool: &str| format!("{}{tool}", self.cross);
        vec![
            (format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), tool("gcc")),
            (format!("CC_{name}"), tool("gcc")),
            (format!("AR_{name}"), tool("ar")),
        ]
    }

    /// The command that runs a binary of this platform.
    pub(super) fn runner(&self, binary: &Path) -> Command {
        if self.native() {
            return Command::new(binary);
        }
        let mut command = Command::new(self.emulator);
        // Where the cross-compiler's package puts the libraries of that platform.
        command.arg("-L").arg(format!("/usr/{}", self.cross.trim_end_matches('-'))).arg(binary);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_chosen_or_refused() {
        assert_eq!(chosen(&[]).unwrap().len(), 2);
        let one = chosen(&["--target", "aarch64-unknown-linux-gnu"]).unwrap();
        assert_eq!(one, &PLATFORMS[1..]);
        assert!(chosen(&["--target", "z80"]).unwrap_err().what.contains("`z80`"));
        assert!(chosen(&["--fast"]).unwrap_err().what.contains("`--fast`"));
    }

    #[test]
    fn a_foreign_platform_has_its_own_tools() {
        let foreign = Platform {
            target: "pdp_11-unknown-linux-gnu",
            cross: "pdp-11-linux-gnu-",
            emulator: "simh",
            advice: "",
        };
        let variables = foreign.cross_compiler();
        let expected =
            ("CC_pdp_11_unknown_linux_gnu".to_owned(), "pdp-11-linux-gnu-gcc".to_owned());
        assert!(variables.contains(&expected), "{variables:?}");
        assert_eq!(variables[0].0, "CARGO_TARGET_PDP_11_UNKNOWN_LINUX_GNU_LINKER");
        assert_eq!(foreign.runner(Path::new("abide")).get_program(), "simh");
    }
}
