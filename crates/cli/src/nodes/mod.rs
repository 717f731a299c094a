//! `abide nodes`: the servers of a cluster.

mod list;

use clap::Subcommand;

use crate::{connection::Common, failed::Failed};

/// What can be asked about nodes.
#[derive(Subcommand)]
pub(crate) enum Command {
    List(list::List),
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        match self {
            Self::List(command) => command.run(common).await,
        }
    }
}
