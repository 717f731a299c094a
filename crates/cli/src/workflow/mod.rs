//! `abide workflow`: operations on workflows, one file per command.

mod cancel;
mod control;
mod count;
mod delete;
mod describe;
mod filter;
mod history;
mod list;
mod patches;
mod pause;
mod query;
mod reset;
mod result;
mod signal;
mod start;
mod terminate;
mod update;
mod update_result;

use std::sync::Arc;

use abide::{Client, ClientError, WorkflowHandle, client::Untyped};
use abide_command::{Common, Failed, Output};
use abide_core::{
    follow::FollowedWaits,
    ids::RunId,
    operation::{AwaitWaits, Describe},
    run::{Description, ShownWait},
};
use clap::{Args, Subcommand};

pub(crate) use self::{
    filter::{Filter, count_runs},
    list::pages,
};

#[derive(Subcommand)]
pub(crate) enum Command {
    Start(Box<start::Start>),
    Signal(signal::Signal),
    Query(query::Query),
    Update(update::Update),
    UpdateResult(update_result::UpdateResult),
    Cancel(cancel::Cancel),
    Terminate(terminate::Terminate),
    Pause(pause::Pause),
    Unpause(pause::Unpause),
    Describe(describe::Describe),
    History(history::History),
    List(list::List),
    Count(count::Count),
    Patches(patches::Patches),
    Result(result::ResultOf),
    Reset(reset::Reset),
    Retry(reset::Retry),
    Delete(delete::Delete),
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        match self {
            Self::Start(command) => command.run(common).await,
            Self::Signal(command) => command.run(common).await,
            Self::Query(command) => command.run(common).await,
            Self::Update(command) => command.run(common).await,
            Self::UpdateResult(command) => command.run(common).await,
            Self::Cancel(command) => command.run(common).await,
            Self::Terminate(command) => command.run(common).await,
            Self::Pause(command) => command.run(common).await,
            Self::Unpause(command) => command.run(common).await,
            Self::Describe(command) => command.run(common).await,
            Self::History(command) => command.run(common).await,
            Self::List(command) => command.run(common).await,
            Self::Count(command) => command.run(common).await,
            Self::Patches(command) => command.run(common).await,
            Self::Result(command) => command.run(common).await,
            Self::Reset(command) => command.run(common).await,
            Self::Retry(command) => command.run(common).await,
            Self::Delete(command) => command.run(common).await,
        }
    }
}

/// Which workflow, and which of its runs.
#[derive(Args, Debug)]
pub(crate) struct Target {
    /// Workflow id
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Run id [default: the current run]
    #[arg(long, value_name = "RUN")]
    run: Option<uuid::Uuid>,
}

impl Target {
    pub(crate) fn handle(&self, client: &Client) -> WorkflowHandle<Untyped> {
        let handle = client.handle_untyped(self.id.as_str());
        match self.run {
            Some(run) => handle.run(RunId::new(run)),
            None => handle,
        }
    }

    /// What the run waits for, as the engine shows it.
    pub(crate) async fn waits(&self, client: &Client) -> Result<Vec<ShownWait>, ClientError> {
        let target = self.handle(client).target();
        let shown = client.ask(AwaitWaits { target, after: 0 }).await?;
        Ok(Arc::unwrap_or_clone(shown.waits))
    }

    /// The run, as the engine shows it.
    pub(crate) async fn describe(&self, client: &Client) -> Result<Description, ClientError> {
        Ok(*client.ask(Describe { target: self.handle(client).target() }).await?)
    }

    /// Follows what the run waits for.
    pub(crate) fn follow_waits(&self, client: &Client) -> FollowedWaits {
        FollowedWaits::new(self.handle(client).target(), 0)
    }
}

impl Target {
    /// Why an operation on this workflow failed.
    pub(crate) fn failed(&self, error: ClientError) -> Failed {
        let id = &self.id;
        let ClientError::NotFound = error else { return Failed::about(id, error) };
        let what = match self.run {
            Some(run) => format!("there is no run {run} of a workflow {id:?}"),
            None => format!("there is no workflow {id:?}"),
        };
        Failed::refused(what).hint("`abide workflow list` shows the existing ones")
    }
}

/// Reports that something was done to a workflow.
pub(crate) fn done(output: Output, what: &str, id: &str) -> Result<(), Failed> {
    output.say(&serde_json::json!({ "done": what, "workflow": id }), format_args!("{what} {id}"))
}
