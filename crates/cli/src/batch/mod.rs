//! `abide batch`: one action on many runs.

mod list;
mod show;
mod start;
mod stop;

use abide::client::BatchInfo;
use abide_command::{Common, Failed};
use clap::Subcommand;
use serde_json::{Value, json};

#[derive(Subcommand)]
pub(crate) enum Command {
    Start(start::Start),
    Show(show::Show),
    Stop(stop::Stop),
    List(list::List),
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        match self {
            Self::Start(command) => command.run(common).await,
            Self::Show(command) => command.run(common).await,
            Self::Stop(command) => command.run(common).await,
            Self::List(command) => command.run(common).await,
        }
    }
}

/// A batch for programs.
fn object(batch: &BatchInfo) -> Value {
    let failures = batch.failures.iter().map(|failure| {
        json!({
            "workflow": failure.workflow.as_str(), "run": failure.run.to_string(),
            "reason": failure.reason,
        })
    });
    json!({
        "batch": batch.id, "action": batch.action, "query": batch.query,
        "status": batch.status.to_string(), "reason": batch.reason, "identity": batch.identity,
        "rate": batch.rate, "started_at": batch.started_at.to_string(),
        "ended_at": batch.ended_at.map(|at| at.to_string()),
        "total": batch.total, "done": batch.done, "failed": batch.failed,
        "failures": failures.collect::<Vec<_>>(),
    })
}
