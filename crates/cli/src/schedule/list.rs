//! `abide schedule list`.

use abide::{Timestamp, schedule::ScheduleRow};
use abide_command::{
    Common, Failed, Table,
    time::{absolute, relative, system_now},
};
use clap::Args;
use serde_json::json;

/// List schedules, the next to start something first
#[derive(Args)]
#[command(after_help = "Example:
  abide schedule list
  abide schedule list --limit 1000 --json")]
pub(crate) struct List {
    /// Maximum number of schedules
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: usize,
}

impl List {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let rows = common.client().await?.schedules().take(self.limit).await?;
        let output = common.output();
        if output.json() {
            return rows.iter().try_for_each(|row| output.object(&object(row)));
        }
        if rows.is_empty() {
            return output.line("no schedules; create one with `abide schedule create`");
        }
        let now = system_now();
        let mut table = Table::new(["schedule", "starts", "times", "next", "open runs", "note"]);
        for row in rows {
            let (next, running) = (next(&row, now), row.running.to_string());
            table.row([row.id, row.workflow_type, row.summary, next, running, row.note]);
        }
        output.lines(table)
    }
}

fn object(row: &ScheduleRow) -> serde_json::Value {
    json!({
        "schedule": row.id, "type": row.workflow_type, "times": row.summary,
        "paused": row.paused, "note": row.note, "next": row.next.map(|at| at.to_string()),
        "running": row.running,
    })
}

fn next(row: &ScheduleRow, now: Timestamp) -> String {
    match row.next {
        _ if row.paused => "paused".into(),
        Some(at) => format!("{} ({})", relative(at, now), absolute(at)),
        None => "-".into(),
    }
}
