//! `abide batch show`.

use abide::client::BatchInfo;
use abide_command::{Common, Failed, Table, time::absolute};
use clap::Args;

use super::object;

/// Show how far a batch is, and which runs refused it
#[derive(Args)]
#[command(after_help = "Example:
  abide batch show 4f1c…
  abide batch show 4f1c… --wait")]
pub(crate) struct Show {
    /// Id of the batch
    id: String,
    /// Wait for its end
    #[arg(long)]
    wait: bool,
}

impl Show {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let batches = client.batches().await?;
        let batch = batches.into_iter().find(|batch| batch.id == self.id);
        let Some(batch) = batch else {
            let what = format!("there is no batch {:?}", self.id);
            return Err(Failed::refused(what).hint("`abide batch list` shows those there are"));
        };
        let batch = if self.wait { client.batch_end(&batch.id).await? } else { batch };
        let output = common.output();
        if output.json() {
            return output.object(&object(&batch));
        }
        output.lines(facts(&batch))?;
        if batch.failures.is_empty() {
            return Ok(());
        }
        let mut table = Table::new(["workflow", "run", "refused because"]);
        for failure in &batch.failures {
            let (workflow, run) = (failure.workflow.to_string(), failure.run.to_string());
            table.row([workflow, run, failure.reason.clone()]);
        }
        output.line("")?;
        output.lines(table)
    }
}

fn facts(batch: &BatchInfo) -> Table {
    let mut facts = vec![
        ("batch", batch.id.clone()),
        ("action", batch.action.to_owned()),
        ("query", batch.query.clone()),
        ("status", batch.status.to_string()),
        ("started", absolute(batch.started_at)),
    ];
    facts.extend(batch.ended_at.map(|at| ("ended", absolute(at))));
    facts.push(("done", format!("{} of {}", batch.done, batch.total)));
    facts.push(("failed", batch.failed.to_string()));
    Table::facts(facts)
}
