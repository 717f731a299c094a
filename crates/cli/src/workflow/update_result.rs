//! `abide workflow update-result`.

use abide::client::UpdateState;
use clap::Args;
use serde_json::json;

use super::Target;
use crate::{connection::Common, failed::Failed, output::payloads};

/// Wait for the outcome of an update that was asked for before, and print it
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow update-result order-7 invoice-12
  abide workflow update-result order-7 invoice-12 --no-wait

The exit code is 1 if the update failed or was rejected, if the run closed before it had an outcome, or
if the run does not know it.")]
pub(crate) struct UpdateResult {
    #[command(flatten)]
    target: Target,
    /// The update's id
    #[arg(value_name = "UPDATE")]
    update: String,
    /// Say how far it is, and do not wait
    #[arg(long)]
    no_wait: bool,
    /// Wait also while the workflow's code does not fit its history, until that is repaired
    #[arg(long)]
    wait_while_blocked: bool,
}

impl UpdateResult {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let mut update = self.target.handle(&client).update_by_id_untyped(self.update.as_str());
        if self.wait_while_blocked {
            update = update.wait_while_blocked();
        }
        let state = match self.no_wait {
            true => update.poll().await,
            false => update.result().await.map(UpdateState::Completed),
        };
        let (stage, result) = match state.map_err(|error| self.target.failed(error))? {
            UpdateState::Admitted => ("admitted", None),
            UpdateState::Accepted => ("accepted", None),
            UpdateState::Completed(result) => ("completed", Some(payloads(&result))),
        };
        let words = result.as_ref().map_or_else(|| stage.to_owned(), ToString::to_string);
        let (id, update) = (&self.target.id, &self.update);
        let told = json!({ "workflow": id, "update": update, "stage": stage, "result": result });
        common.output().say(&told, words)
    }
}
