//! `abide workflow result`.

use abide::client::{Untyped, WorkflowHandle};
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
pub(super) struct ResultOf {
    #[command(flatten)]
    target: Target,
}

impl ResultOf {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        print_result(&self.target.handle(&client), common.output()).await
    }
}

/// Waits for the result and prints it.
pub(super) async fn print_result(
    handle: &WorkflowHandle<Untyped>,
    output: Output,
) -> Result<(), Failed> {
    let result = payloads(&handle.result_untyped().await?);
    output.say(&json!({ "workflow": handle.id().as_str(), "result": result }), &result)
}
