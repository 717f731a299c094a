//! `abide workflow list`.

use abide::Client;
use abide_command::{
    Common, Failed, Table,
    time::{absolute, relative, system_now},
};
use abide_core::{
    codec::{self, RunDetails},
    list::{RunFilter, RunRow},
    operation::ListRuns,
    payload::PayloadMap,
};
use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};

use super::filter::{Filter, in_namespace};
use crate::output::{payload, snake_case};

/// List runs, newest first unless the query orders them
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow list --type approval --status running
  abide workflow list --started-after 2h --json
  abide workflow list --query \"Amount > 100 AND StartTime > '2026-11-01' ORDER BY StartTime ASC\"")]
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
    queue: String,
    parent: Option<String>,
    memo: Map<String, Value>,
    search_attributes: Map<String, Value>,
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
        let page = client.ask(page).await?;
        rows.extend(page.rows);
        filter.after = page.next;
        if filter.after.is_none() {
            break;
        }
    }
    Ok(rows)
}

fn table(rows: &[RunRow]) -> Table {
    let now = system_now();
    let details: Vec<_> = rows.iter().map(details).collect();
    let mut columns = vec!["workflow", "type", "status", "started", "closed", "run"];
    // Columns that would be empty are left out.
    let memo = details.iter().any(|details| !details.memo.is_empty());
    let attributes = details.iter().any(|details| !details.search_attributes.is_empty());
    columns.extend(attributes.then_some("search attributes"));
    columns.extend(memo.then_some("memo"));
    let mut table = Table::new(columns);
    for (row, details) in rows.iter().zip(&details) {
        let mut cells = vec![
            row.workflow.to_string(),
            row.workflow_type.clone(),
            status(row),
            format!("{} ({})", relative(row.started_at, now), absolute(row.started_at)),
            row.closed_at.map(|at| relative(at, now)).unwrap_or_default(),
            row.run.to_string(),
        ];
        cells.extend(attributes.then(|| named_values(&details.search_attributes)));
        cells.extend(memo.then(|| named_values(&details.memo)));
        table.row(cells);
    }
    table
}

/// Memo and search attributes. A row whose details are damaged is still worth showing.
fn details(row: &RunRow) -> RunDetails {
    codec::decode_run_details(row.details.clone()).unwrap_or_default()
}

fn named_values(values: &PayloadMap) -> String {
    let shown = values.iter().map(|(name, value)| format!("{name} = {}", payload(value)));
    shown.collect::<Vec<_>>().join(", ")
}

fn object(values: &PayloadMap) -> Map<String, Value> {
    values.iter().map(|(name, value)| (name.clone(), payload(value))).collect()
}

fn status(row: &RunRow) -> String {
    snake_case(&format!("{:?}", row.status))
}

impl Shown {
    fn of(row: &RunRow) -> Self {
        let RunDetails { memo, search_attributes } = details(row);
        Self {
            workflow: row.workflow.to_string(),
            run: row.run.to_string(),
            workflow_type: row.workflow_type.clone(),
            status: status(row),
            started_at: row.started_at.to_string(),
            closed_at: row.closed_at.map(|at| at.to_string()),
            queue: row.queue.clone(),
            parent: row.parent.as_ref().map(|parent| parent.workflow.to_string()),
            memo: object(&memo),
            search_attributes: object(&search_attributes),
        }
    }
}
