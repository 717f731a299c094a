//! `abide waits list`: what runs wait for, over all workflows.

use abide::{Client, Timestamp};
use abide_core::list::{WaitFilter, WaitKind, WaitPosition, WaitRow};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use crate::{
    connection::Common,
    failed::Failed,
    output::{Table, absolute, moment, parse_length, relative, system_now},
};

/// What can be asked about waits.
#[derive(Subcommand)]
pub(crate) enum Command {
    List(List),
}

/// List what runs wait for, those first whose time is up first
#[derive(Args)]
#[command(after_help = "Example:
  abide waits list
  abide waits list --kind signal --name decide --within 24h")]
pub(crate) struct List {
    /// Only waits of this kind
    #[arg(short, long, value_enum, value_name = "KIND")]
    kind: Option<Kind>,
    /// Only this signal, condition or timer
    #[arg(long, value_name = "NAME", requires = "kind")]
    name: Option<String>,
    /// Only waits that end within this time
    #[arg(long, value_name = "TIME", value_parser = parse_length, allow_hyphen_values = true)]
    within: Option<std::time::Duration>,
    /// How many at most
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
}

/// What is waited for.
#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Time to pass
    Timer,
    /// A signal
    Signal,
    /// A condition on the run's own state
    Condition,
    /// The next attempt of an activity
    ActivityRetry,
    /// The next attempt of a child
    ChildRetry,
    /// A person's decision
    Approval,
}

/// A wait, as programs read it.
#[derive(Serialize)]
struct Shown {
    workflow: String,
    run: String,
    kind: &'static str,
    name: String,
    since: String,
    /// None without a deadline.
    until: Option<String>,
    /// The timer that `abide timer reschedule` moves.
    timer: Option<String>,
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        let Self::List(list) = self;
        let filter = WaitFilter {
            kind: list.kind.map(WaitKind::from),
            name: list.name,
            until: list.within.map(moment).transpose()?,
            ..WaitFilter::default()
        };
        let rows = pages(&common.client().await?, filter, list.limit).await?;
        let output = common.output();
        if output.json() {
            return rows.iter().try_for_each(|row| output.object(&Shown::of(row)));
        }
        if rows.is_empty() {
            return output.line("nothing waits");
        }
        output.line(table(&rows))
    }
}

/// Reads until there is enough or no more.
async fn pages(
    client: &Client,
    mut filter: WaitFilter,
    limit: usize,
) -> Result<Vec<WaitRow>, Failed> {
    let mut rows = Vec::new();
    while rows.len() < limit {
        let page = client.waits(filter.clone(), limit - rows.len()).await?;
        let Some((shard, last)) = page.last() else { break };
        filter.after = Some(WaitPosition::of(*shard, last));
        rows.extend(page.into_iter().map(|(_, row)| row));
    }
    Ok(rows)
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

/// The end of a wait, from here and exactly.
pub(crate) fn until(at: Timestamp, now: Timestamp) -> String {
    if at.never() { "-".into() } else { format!("{} ({})", relative(at, now), absolute(at)) }
}

/// What is waited for, in words.
pub(crate) fn waits_for(kind: WaitKind, name: &str) -> String {
    match kind {
        WaitKind::Timer => "time".into(),
        WaitKind::Signal if name.is_empty() => "any signal".into(),
        WaitKind::Signal => format!("signal {name}"),
        WaitKind::Condition if name.is_empty() => "condition".into(),
        WaitKind::Condition => format!("condition {name}"),
        WaitKind::ActivityRetry => "retry of an activity".into(),
        WaitKind::ChildRetry => format!("retry of child {name}"),
        WaitKind::Approval if name.is_empty() => "approval".into(),
        WaitKind::Approval => format!("approval {name}"),
    }
}

/// A kind of wait, as programs read it.
pub(crate) const fn kind_name(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Timer => "timer",
        WaitKind::Signal => "signal",
        WaitKind::Condition => "condition",
        WaitKind::ActivityRetry => "activity_retry",
        WaitKind::ChildRetry => "child_retry",
        WaitKind::Approval => "approval",
    }
}

impl Shown {
    fn of(row: &WaitRow) -> Self {
        Self {
            workflow: row.workflow.to_string(),
            run: row.run.to_string(),
            kind: kind_name(row.kind),
            name: row.name.clone(),
            since: row.since.to_string(),
            until: (!row.until.never()).then(|| row.until.to_string()),
            timer: row.timer.as_ref().map(ToString::to_string),
        }
    }
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
        }
    }
}
