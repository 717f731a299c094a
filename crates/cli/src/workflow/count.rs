//! `abide workflow count`.

use std::collections::BTreeMap;

use abide::Client;
use abide_command::{Common, Failed, Output, Table};
use abide_core::{
    list::RunFilter,
    search::Query,
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
  abide workflow count --by status
  abide workflow count --query \"Amount > 100 GROUP BY Region\"")]
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
        let filter: RunFilter = self.filter.into();
        match self.by {
            None if Query::asks_for_groups(&filter.query) => {
                by_field(&client, filter, common.output()).await
            }
            Some(by) => by.tally(&client, filter, common.output()).await,
            None => {
                let count = count_runs(&client, filter).await?;
                common.output().say(&json!({ "count": count }), count)
            }
        }
    }
}

/// Counts runs by the field that the query names.
async fn by_field(client: &Client, filter: RunFilter, output: Output) -> Result<(), Failed> {
    let tally = client.ask(TallyRuns { filter: in_namespace(client, filter) }).await?;
    let groups = tally.groups.into_iter().filter_map(|(group, count)| match group {
        RunGroup::Value(value) => Some((value, count)),
        RunGroup::Type { .. } => None,
    });
    if output.json() {
        let groups: Vec<_> =
            groups.map(|(value, count)| json!({ "value": value, "count": count })).collect();
        return output.object(&json!({ "groups": groups, "more": tally.more }));
    }
    let mut table = Table::new(["value", "runs"]);
    for (value, count) in groups {
        table.row([value.unwrap_or_else(|| "(none)".to_owned()), count.to_string()]);
    }
    output.lines(table)?;
    if tally.more { output.line(ONLY_SOME) } else { Ok(()) }
}

/// What is said if a tally did not examine all runs.
const ONLY_SOME: &str = "there are more runs than a tally examines: only the newest are counted";

impl By {
    async fn tally(self, client: &Client, filter: RunFilter, output: Output) -> Result<(), Failed> {
        let filter = in_namespace(client, filter);
        let tally = client.ask(TallyRuns { filter }).await?;
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (group, count) in tally.groups {
            let RunGroup::Type { status, workflow_type } = group else { continue };
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
        if tally.more { output.line(ONLY_SOME) } else { Ok(()) }
    }
}
