//! `abide workflow count`.

use clap::Args;
use serde_json::json;

use super::filter::Filter;
use crate::{connection::Common, failed::Failed};

/// Count runs
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow count --status running --status paused")]
pub(crate) struct Count {
    #[command(flatten)]
    filter: Filter,
}

impl Count {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let count = common.client().await?.count_runs(self.filter.into()).await?;
        common.output().say(&json!({ "count": count }), count)
    }
}
