//! `abide approvals list`.

use abide::approval::concerns;
use abide_command::{Common, Failed, Table, time::system_now};
use abide_core::{
    event::{Approval, WaitDetails},
    list::{WaitFilter, WaitKind, WaitRow},
};
use clap::Args;

use crate::waits::{Filter, Paged, details, pages, row_object, until};

/// List open requests, the most urgent first
#[derive(Args)]
#[command(after_help = "Example:
  abide approvals list
  abide approvals list --for anna --for managers --within 24h")]
pub(crate) struct List {
    /// Only requests that this person or role may decide; repeat for several
    #[arg(long = "for", value_name = "ACTOR")]
    actors: Vec<String>,
    /// Only requests with this key
    #[arg(long, value_name = "KEY")]
    name: Option<String>,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    paged: Paged,
}

impl List {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let filter = WaitFilter {
            kind: Some(WaitKind::Approval),
            name: self.name,
            ..self.filter.of_engine()?
        };
        let passes = |row: &WaitRow| {
            let details = details(row).unwrap_or_default();
            self.actors.is_empty() || concerns(&details.actors, &self.actors)
        };
        let rows = pages(&common.client().await?, filter, self.paged.limit, passes).await?;
        let output = common.output();
        if output.json() {
            return rows.iter().try_for_each(|row| output.object(&row_object(row)));
        }
        if rows.is_empty() {
            return output.line("no open requests");
        }
        output.lines(table(&rows))
    }
}

fn table(rows: &[WaitRow]) -> Table {
    let now = system_now();
    let mut table = Table::new(["workflow", "request", "subject", "for", "until", "choices"]);
    for row in rows {
        let WaitDetails { subject, actors, approval, .. } = details(row).unwrap_or_default();
        let Approval { request, choices, .. } = approval.unwrap_or_default();
        let actors = if actors.is_empty() { "anyone".into() } else { actors.join(", ") };
        let until = until(row.until, now);
        table.row([row.workflow.to_string(), request, subject, actors, until, choices.join(", ")]);
    }
    table
}
