//! `abide search-attribute`: the search attributes of a namespace.

mod create;
mod delete;
mod list;

use abide_command::{Common, Failed};
use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    Create(create::Create),
    List(list::List),
    Delete(delete::Delete),
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        match self {
            Self::Create(command) => command.run(common).await,
            Self::List(command) => command.run(common).await,
            Self::Delete(command) => command.run(common).await,
        }
    }
}
