//! `abide workflow query`.

use abide_command::{Common, Failed};
use clap::Args;
use serde_json::json;

use super::Target;
use crate::{input::Input, output::payloads};

/// Query a workflow without changing it
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow query order-7 status")]
pub(crate) struct Query {
    #[command(flatten)]
    target: Target,
    /// Query name
    name: String,
    #[command(flatten)]
    input: Input,
}

impl Query {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let input = self.input.payloads()?;
        let client = common.client().await?;
        let handle = self.target.handle(&client);
        let answer = handle.query_untyped(self.name, input).await;
        let answer = answer.map_err(|error| self.target.failed(error))?;
        let answer = payloads(&answer);
        common.output().say(&json!({ "workflow": self.target.id, "answer": answer }), &answer)
    }
}
