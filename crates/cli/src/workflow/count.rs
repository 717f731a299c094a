//! `abide workflow count`.

use std::collections::BTreeMap;

use abide::Client;
use abide_command::{Common, Failed, Output, Table};
use abide_core::{
    list::RunFilter,
    tally::{RunGroup, TallyRuns},
};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::filter::{Filter, count_runs, in_namespace};
use crate::output::snake_case;

/// Count runs
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow count --status running --status paused
  abide workflow count --by status")]
pub(crate) struct Count {
    /// Count by status or by type
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<By>,
    #[command(flatten)]
    filter: Filter,
}

/// What runs are grouped by.
#[derive(Clone, Copy, ValueEnum)]
enum By {
    /// Status of the run
    Status,
    /// Workflow type
    Type,
}

impl Count {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let filter = self.filter.into();
        match self.by {
            Some(by) => by.tally(&client, filter, common.output()).await,
            None => {
                let count = count_runs(&client, filter).await?;
                common.output().say(&json!({ "count": count }), count)
            }
        }
    }
}

impl By {
    async fn tally(self, client: &Client, filter: RunFilter, output: Output) -> Result<(), Failed> {
        let filter = in_namespace(client, filter);
        let tally = client.ask(TallyRuns { filter }).await?;
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (RunGroup { status, workflow_type }, count) in tally.groups {
            let name = match self {
                Self::Status => snake_case(&format!("{status:?}")),
                Self::Type => workflow_type,
            };
            *counts.entry(name).or_default() += count;
        }
        if output.json() {
            return output.object(&json!({ "counts": counts, "more": tally.more }));
        }
        if counts.is_empty() && !tally.more {
            return output.line("no runs");
        }
        let what = match self {
            Self::Status => "status",
            Self::Type => "type",
        };
        let mut table = Table::new([what, "runs"]);
        for (name, count) in counts {
            table.row([name, count.to_string()]);
        }
        output.lines(table)?;
        if tally.more {
            output
                .line("there are more runs than a tally examines: only the newest are counted")?;
        }
        Ok(())
    }
}
