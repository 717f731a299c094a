//! The worker of a measurement, in its own process.

use abide_command::{Common, Failed};
use clap::Args;
use serde_json::json;

use crate::workflows;

/// Run the worker of the benchmarks until it is killed
#[derive(Args)]
#[command(hide = true)]
pub(crate) struct Worker {}

impl Worker {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        common.output().say(&json!({ "ready": true }), "ready")?;
        workflows::worker(&client).run().await.map_err(Failed::refused)
    }
}
