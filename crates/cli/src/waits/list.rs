//! `abide waits list`.

use abide_command::{
    Common, Failed, Table,
    time::{relative, system_now},
};
use abide_core::list::{WaitFilter, WaitKind, WaitRow};
use clap::{Args, ValueEnum};

use super::{APPROVAL_PREFIX, Filter, Paged, pages, row_object, until, waits_for};

/// List what runs wait for, the earliest deadline first
#[derive(Args)]
#[command(after_help = "Example:
  abide waits list
  abide waits list --type order --older-than 2d
  abide waits list --kind signal --name decide --within 24h")]
pub(crate) struct List {
    /// Only waits of this kind
    #[arg(short, long, value_enum, value_name = "KIND")]
    kind: Option<Kind>,
    /// Only waits for this signal, condition, approval or timer
    #[arg(long, value_name = "NAME", requires = "kind")]
    name: Option<String>,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    paged: Paged,
}

/// The kind of a wait.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Kind {
    /// A timer
    Timer,
    /// A signal
    Signal,
    /// A condition on the run's own state
    Condition,
    /// The retry of an activity
    ActivityRetry,
    /// The retry of a child workflow
    ChildRetry,
    /// A person's decision
    Approval,
    /// The next time of a schedule
    Schedule,
}

impl List {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let filter = WaitFilter {
            kind: self.kind.map(WaitKind::from),
            name: self.name,
            ..self.filter.of_engine()?
        };
        let client = common.client().await?;
        let mut rows = pages(&client, filter.clone(), self.paged.limit, |_| true).await?;
        if let (true, Some(filter)) = (rows.is_empty(), by_request(filter)) {
            rows = pages(&client, filter, self.paged.limit, |_| true).await?;
        }
        let output = common.output();
        if output.json() {
            return rows.iter().try_for_each(|row| output.object(&row_object(row)));
        }
        if rows.is_empty() {
            return output.line("no waits");
        }
        output.lines(table(&rows))
    }
}

/// The filter for an approval that is named by its request, as lists show it.
fn by_request(filter: WaitFilter) -> Option<WaitFilter> {
    let request = filter.name.as_ref().filter(|_| filter.kind == Some(WaitKind::Approval))?;
    let name = Some(format!("{APPROVAL_PREFIX}{request}"));
    Some(WaitFilter { name, ..filter })
}

fn table(rows: &[WaitRow]) -> Table {
    let now = system_now();
    let mut table = Table::new(["workflow", "waits for", "since", "until", "timer"]);
    for row in rows {
        table.row([
            row.workflow.to_string(),
            waits_for(row.kind, &row.name),
            relative(row.since, now),
            until(row.until, now),
            row.timer.as_ref().map_or_else(|| "-".into(), ToString::to_string),
        ]);
    }
    table
}

impl From<Kind> for WaitKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Timer => Self::Timer,
            Kind::Signal => Self::Signal,
            Kind::Condition => Self::Condition,
            Kind::ActivityRetry => Self::ActivityRetry,
            Kind::ChildRetry => Self::ChildRetry,
            Kind::Approval => Self::Approval,
            Kind::Schedule => Self::Schedule,
        }
    }
}
