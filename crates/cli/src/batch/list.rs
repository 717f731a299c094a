//! `abide batch list`.

use abide_command::{Common, Failed, Table};
use clap::Args;

use super::object;

/// List batches, the newest last
#[derive(Args)]
#[command(after_help = "Example:
  abide batch list
  abide batch list --json")]
pub(crate) struct List {}

impl List {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let batches = common.client().await?.batches().await?;
        let output = common.output();
        if output.json() {
            return batches.iter().try_for_each(|batch| output.object(&object(batch)));
        }
        if batches.is_empty() {
            return output.line("no batches; start one with `abide batch start`");
        }
        let mut table = Table::new(["batch", "action", "status", "done", "failed", "query"]);
        for batch in batches {
            table.row([
                batch.id,
                batch.action.to_owned(),
                batch.status.to_string(),
                format!("{} of {}", batch.done, batch.total),
                batch.failed.to_string(),
                batch.query,
            ]);
        }
        output.lines(table)
    }
}
