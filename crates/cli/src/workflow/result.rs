//! `abide workflow result`.

use std::{pin::pin, time::Duration};

use abide::{Client, ClientError, WorkflowHandle, client::Untyped};
use abide_command::{Common, Failed, Output};
use abide_core::{
    operation::{Describe, RunTarget},
    payload::{Payload, Payloads},
    visible::visible,
};
use clap::Args;
use serde_json::json;

use super::{
    Target,
    describe::{trouble_lines, trouble_object},
};
use crate::output::payloads;

/// How long a result is awaited before the first look at the run.
const FIRST_LOOK: Duration = Duration::from_secs(3);

/// The longest time between two looks.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Wait for the last run of a workflow, and print its result
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
        let handle = self.target.handle(&client);
        let result = result_with_remark(&client, &handle, common.output(), &self.target.id).await;
        let result = result.map_err(|error| self.target.failed(error))?;
        print_result(common.output(), &self.target.id, &result)
    }
}

/// Waits for the result of a workflow. If its code cannot run, a remark says so once, because the
/// result may then never come.
pub(super) async fn result_with_remark(
    client: &Client,
    handle: &WorkflowHandle<Untyped>,
    output: Output,
    id: &str,
) -> Result<Payloads, ClientError> {
    let mut result = pin!(handle.result_untyped());
    tokio::select! {
        result = &mut result => return result,
        () = remark_on_trouble(client, handle.target(), output, id) => {}
    }
    result.await
}

/// Returns when it has printed the run's trouble. It looks less and less often.
async fn remark_on_trouble(client: &Client, target: RunTarget, output: Output, id: &str) {
    let mut pause = FIRST_LOOK;
    loop {
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
        // The wait for the result reports an engine that does not answer.
        let described = client.ask(Describe { target: target.clone() }).await;
        let trouble = described.ok().and_then(|run| run.trouble);
        if let Some(trouble) = trouble {
            // A remark that cannot be printed is dropped: the result still counts.
            let _ = output.remark(
                &json!({ "workflow": id, "waiting": true, "trouble": trouble_object(&trouble) }),
                format_args!("still waiting for {}: {}", visible(id), trouble_lines(&trouble)),
            );
            return;
        }
    }
}

/// Prints the result of a workflow.
pub(super) fn print_result(output: Output, id: &str, result: &[Payload]) -> Result<(), Failed> {
    let result = payloads(result);
    output.say(&json!({ "workflow": id, "result": result }), &result)
}
