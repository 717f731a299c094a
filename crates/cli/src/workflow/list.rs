//! `abide workflow list`.

use abide::Client;
use abide_command::{
    Common, Failed, Table,
    time::{absolute, relative, system_now},
};
use abide_core::{
    list::{RunFilter, RunRow},
    operation::ListRuns,
};
use clap::Args;
use serde::Serialize;

use super::filter::{Filter, in_namespace};
use crate::output::snake_case;

/// List runs, newest first
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow list --type approval --status running
  abide workflow list --started-after 2h --json")]
pub(crate) struct List {
    #[command(flatten)]
    filter: Filter,
    /// Maximum number of runs
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
}

/// A run, as JSON for programs.
#[derive(Serialize)]
struct Shown {
    workflow: String,
    run: String,
    #[serde(rename = "type")]
    workflow_type: String,
    status: String,
    started_at: String,
    closed_at: Option<String>,
}

impl List {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let rows = pages(&client, self.filter.into(), self.limit).await?;
        let output = common.output();
        if output.json() {
            return rows.iter().try_for_each(|row| output.object(&Shown::of(row)));
        }
        if rows.is_empty() {
            return output.line("no runs; start one with `abide workflow start`");
        }
        output.lines(table(&rows))
    }
}

/// Reads pages until there are enough rows or no more.
pub(crate) async fn pages(
    client: &Client,
    mut filter: RunFilter,
    limit: usize,
) -> Result<Vec<RunRow>, Failed> {
    filter = in_namespace(client, filter);
    let mut rows: Vec<RunRow> = Vec::new();
    while rows.len() < limit {
        let page = ListRuns { filter: filter.clone(), limit: Some(limit - rows.len()) };
        let page = client.ask(page).await?.rows;
        let Some(last) = page.last() else { break };
        filter.after = Some((last.started_at, last.run));
        rows.extend(page);
    }
    Ok(rows)
}

fn table(rows: &[RunRow]) -> Table {
    let now = system_now();
    let mut table = Table::new(["workflow", "type", "status", "started", "closed", "run"]);
    for row in rows {
        table.row([
            row.workflow.to_string(),
            row.workflow_type.clone(),
            status(row),
            format!("{} ({})", relative(row.started_at, now), absolute(row.started_at)),
            row.closed_at.map(|at| relative(at, now)).unwrap_or_default(),
            row.run.to_string(),
        ]);
    }
    table
}

fn status(row: &RunRow) -> String {
    snake_case(&format!("{:?}", row.status))
}

impl Shown {
    fn of(row: &RunRow) -> Self {
        Self {
            workflow: row.workflow.to_string(),
            run: row.run.to_string(),
            workflow_type: row.workflow_type.clone(),
            status: status(row),
            started_at: row.started_at.to_string(),
            closed_at: row.closed_at.map(|at| at.to_string()),
        }
    }
}
