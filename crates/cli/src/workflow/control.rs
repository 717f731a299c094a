//! Arguments of the commands that cancel, terminate, pause and unpause a workflow: which one, why, and
//! under which key.

use abide::{
    WorkflowHandle,
    client::{ControlRequest, Untyped},
};
use abide_command::{Common, Failed};
use clap::Args;

use super::{Target, done};

#[derive(Args)]
pub(super) struct ControlArgs {
    #[command(flatten)]
    target: Target,
    /// Reason, recorded in the history
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Idempotency key: a retry with the same key has no further effect
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl ControlArgs {
    /// Makes the request, and reports what was done.
    pub(super) async fn run(
        self,
        common: &Common,
        request: fn(WorkflowHandle<Untyped>, String) -> ControlRequest,
        what: &str,
    ) -> Result<(), Failed> {
        let client = common.client().await?;
        let mut control = request(self.target.handle(&client), self.reason);
        if let Some(key) = self.key {
            control = control.key(key);
        }
        control.await.map_err(|error| self.target.failed(error))?;
        done(common.output(), what, &self.target.id)
    }
}
