//! `abide nodes`: the servers of a cluster.

mod list;
mod secret;

use abide_command::{Common, Failed};
use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    List(list::List),
    Secret(secret::MakeSecret),
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        match self {
            Self::List(command) => command.run(common).await,
            Self::Secret(command) => command.run(common),
        }
    }
}
