//! `abide codec`: for the owners of keys.

mod key;
mod serve;

use abide_command::{Common, Failed};
use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    Serve(serve::Serve),
    Key(key::MakeKey),
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        match self {
            Self::Serve(command) => command.run(common).await,
            Self::Key(command) => command.run(common),
        }
    }
}
