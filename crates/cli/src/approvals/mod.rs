//! `abide approvals`: waits for a person's decision, and the commands that answer them.

mod answer;
mod list;

use abide_command::{Common, Failed};
use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Command {
    List(list::List),
    Decide(answer::Decide),
    Delegate(answer::Delegate),
    Withdraw(answer::Withdraw),
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        match self {
            Self::List(command) => command.run(common).await,
            Self::Decide(command) => command.run(common).await,
            Self::Delegate(command) => command.run(common).await,
            Self::Withdraw(command) => command.run(common).await,
        }
    }
}
