//! `abide workflow update`.

use abide_command::{Common, Failed};
use clap::Args;
use serde_json::json;

use super::Target;
use crate::{input::Input, output::payloads};

/// Send an update to a workflow, and wait for its outcome
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow update order-7 remind_after --input 3600 --update-id once")]
pub(crate) struct Update {
    #[command(flatten)]
    target: Target,
    /// Update name
    name: String,
    #[command(flatten)]
    input: Input,
    /// Update id: a retry with the same id has no further effect
    #[arg(long, value_name = "ID")]
    update_id: Option<String>,
    /// Wait only until the workflow accepts the update
    #[arg(long)]
    no_wait: bool,
    /// Keep waiting while the workflow's code does not fit its history
    #[arg(long)]
    wait_while_blocked: bool,
}

impl Update {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let input = self.input.payloads()?;
        let client = common.client().await?;
        let mut update = self.target.handle(&client).update_untyped(self.name, input);
        if let Some(id) = self.update_id {
            update = update.id(id);
        }
        if self.wait_while_blocked {
            update = update.wait_while_blocked();
        }
        let (id, output) = (&self.target.id, common.output());
        let failed = |error| self.target.failed(error);
        let accepted = update.start().await.map_err(failed)?;
        let update = accepted.id().to_string();
        if self.no_wait {
            let words = format!("accepted {id} (update {update})");
            return output.say(&json!({ "workflow": id, "update": update }), words);
        }
        let result = payloads(&accepted.result().await.map_err(failed)?);
        output.say(&json!({ "workflow": id, "update": update, "result": result }), &result)
    }
}
