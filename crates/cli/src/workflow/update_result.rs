//! `abide workflow update-result`.

use abide::client::UpdateState;
use abide_command::{Common, Failed};
use clap::Args;
use serde_json::json;

use super::Target;
use crate::output::payloads;

/// Wait for an update that was sent earlier, and print its outcome
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow update-result order-7 invoice-12
  abide workflow update-result order-7 invoice-12 --no-wait

The exit code is 1 if the update failed or was rejected, if the run closed before the update had an
outcome, or if the update is unknown.")]
pub(crate) struct UpdateResult {
    #[command(flatten)]
    target: Target,
    /// Update id
    #[arg(value_name = "UPDATE")]
    update: String,
    /// Print the current stage instead of waiting
    #[arg(long)]
    no_wait: bool,
    /// Keep waiting while the workflow's code does not fit its history
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
