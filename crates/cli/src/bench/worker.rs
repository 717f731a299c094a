//! The worker of a measurement, in its own process.

use clap::Args;
use serde_json::json;

use super::workflows;
use crate::{connection::Common, failed::Failed};

/// Run the worker of the benchmarks until it is killed
#[derive(Args)]
#[command(hide = true)]
pub(super) struct Worker {}

impl Worker {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        common.output().say(&json!({ "ready": true }), "ready")?;
        workflows::worker(&client).run().await.map_err(Failed::refused)
    }
}
