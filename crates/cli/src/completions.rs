//! `abide completions`: prints completion scripts for shells.

use abide_command::Failed;
use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use crate::Cli;

/// Print a completion script for a shell
#[derive(Args)]
#[command(after_help = "Example:
  abide completions bash > ~/.local/share/bash-completion/completions/abide
  abide completions zsh > ~/.zfunc/_abide
  abide completions fish > ~/.config/fish/completions/abide.fish")]
pub(crate) struct Completions {
    /// Shell to generate the script for
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<(), Failed> {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "abide", &mut script);
        Ok(std::io::Write::write_all(&mut std::io::stdout().lock(), &script)?)
    }
}
