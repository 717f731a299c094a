//! `abide workflow result`.

use abide_core::payload::Payload;
use clap::Args;
use serde_json::json;

use super::Target;
use crate::{
    connection::Common,
    failed::Failed,
    output::{Output, payloads},
};

/// Wait for the result of a workflow, over all runs that follow, and print it
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow result order-7

The exit code is 1 if the workflow failed, was cancelled, was terminated or timed out.")]
pub(crate) struct ResultOf {
    #[command(flatten)]
    target: Target,
}

impl ResultOf {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let result = self.target.handle(&client).result_untyped().await;
        let result = result.map_err(|error| self.target.failed(error))?;
        print_result(common.output(), &self.target.id, &result)
    }
}

/// Prints the result of a workflow.
pub(super) fn print_result(output: Output, id: &str, result: &[Payload]) -> Result<(), Failed> {
    let result = payloads(result);
    output.say(&json!({ "workflow": id, "result": result }), &result)
}
