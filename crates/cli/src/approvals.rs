//! `abide approvals`: what waits for a person's decision, and the decision.

use abide::{Client, payload::Data as _};
use abide_core::{
    event::{Approval, WaitDetails},
    list::{WaitFilter, WaitKind, WaitRow},
    run::ShownWait,
};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::{
    connection::Common,
    failed::Failed,
    output::{Table, payloads, system_now},
    waits::{Filter, Paged, details, pages, row_object, until},
    workflow::Target,
};

/// What can be done about approvals.
#[derive(Subcommand)]
pub(crate) enum Command {
    List(List),
    Decide(Decide),
}

/// List what waits for a person's decision, the most urgent first
#[derive(Args)]
#[command(after_help = "Example:
  abide approvals list
  abide approvals list --for anna --for managers --within 24h")]
pub(crate) struct List {
    /// Only requests that this person or role may decide; repeat it for several
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

/// Decide a request, and print what the workflow answers
#[derive(Args)]
#[command(after_help = "Example:
  abide approvals decide order-7 approve --by anna
  abide approvals decide order-7 reject --by anna --role managers --comment 'too expensive'")]
pub(crate) struct Decide {
    #[command(flatten)]
    target: Target,
    /// The decision, such as one of the request's choices
    choice: String,
    /// Who decides
    #[arg(long, value_name = "NAME")]
    by: String,
    /// A role of whoever decides; repeat it for several
    #[arg(long, value_name = "ROLE")]
    role: Vec<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// The request, if the workflow has several
    #[arg(long, value_name = "REQUEST")]
    request: Option<String>,
    /// Makes repeats of this decision the same decision
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        match self {
            Self::List(command) => command.run(common).await,
            Self::Decide(command) => command.run(common).await,
        }
    }
}

impl List {
    async fn run(self, common: &Common) -> Result<(), Failed> {
        let filter = WaitFilter {
            kind: Some(WaitKind::Approval),
            name: self.name,
            ..self.filter.of_engine()?
        };
        let passes = |row: &WaitRow| {
            let details = details(row).unwrap_or_default();
            self.actors.is_empty() || may_act(&details, &self.actors)
        };
        let rows = pages(&common.client().await?, filter, self.paged.limit, passes).await?;
        let output = common.output();
        if output.json() {
            return rows.iter().try_for_each(|row| output.object(&row_object(row)));
        }
        if rows.is_empty() {
            return output.line("nothing waits for a decision");
        }
        output.line(table(&rows))
    }
}

/// A request that names nobody may be decided by anybody.
fn may_act(details: &WaitDetails, actors: &[String]) -> bool {
    details.actors.is_empty() || details.actors.iter().any(|actor| actors.contains(actor))
}

fn table(rows: &[WaitRow]) -> Table {
    let now = system_now();
    let mut table = Table::new(["workflow", "request", "subject", "for", "until", "choices"]);
    for row in rows {
        let WaitDetails { subject, actors, approval, .. } = details(row).unwrap_or_default();
        let Approval { request, choices, .. } = approval.unwrap_or_default();
        let actors = if actors.is_empty() { "anybody".into() } else { actors.join(", ") };
        let until = until(row.until, now);
        table.row([row.workflow.to_string(), request, subject, actors, until, choices.join(", ")]);
    }
    table
}

impl Decide {
    async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let Approval { request, update, .. } = self.approval(&client).await?;
        let decision = json!({
            "request": request, "decision": self.choice, "approver": self.by, "roles": self.role,
            "comment": self.comment, "key": self.key,
        });
        let input = decision.to_payload().map_err(Failed::usage)?;
        let update = self.target.handle(&client).update_untyped(update, Vec::from_iter(input));
        let answer = payloads(&update.await.map_err(|error| self.target.failed(error))?);
        common.output().say(
            &json!({
                "workflow": self.target.id, "request": request, "decision": self.choice,
                "answer": answer,
            }),
            &answer,
        )
    }

    /// The request that is meant: the only open one, unless one is named.
    async fn approval(&self, client: &Client) -> Result<Approval, Failed> {
        let id = &self.target.id;
        let waits = self.target.handle(client).waits().await;
        let waits = waits.map_err(|error| self.target.failed(error))?;
        let open: Vec<_> = waits.iter().filter_map(approval_of).collect();
        let shows = format!("`abide waits show {id}` shows what it waits for");
        let named = |(_, approval): &&(&str, &Approval)| {
            self.request.as_ref().is_none_or(|request| approval.request == *request)
        };
        match (open.iter().filter(named).collect::<Vec<_>>().as_slice(), &self.request) {
            ([(_, approval)], _) => Ok((*approval).clone()),
            ([], _) if open.is_empty() => {
                Err(Failed::refused(format_args!("{id} waits for no decision")).hint(shows))
            }
            ([], Some(request)) => {
                let what = format!("{id} has no open request {request:?}, only {}", listed(&open));
                Err(Failed::refused(what).hint(shows))
            }
            (_, _) => {
                let what = format!("{id} has several open requests: {}", listed(&open));
                Err(Failed::usage(what).hint("name one with --request"))
            }
        }
    }
}

/// What the wait is about and how it is decided, if a person decides it.
fn approval_of(wait: &ShownWait) -> Option<(&str, &Approval)> {
    let details = wait.details.as_ref()?;
    Some((details.subject.as_str(), details.approval.as_ref()?))
}

fn listed(open: &[(&str, &Approval)]) -> String {
    let one = |(subject, approval): &(&str, &Approval)| match *subject {
        "" => approval.request.clone(),
        subject => format!("{} ({subject})", approval.request),
    };
    open.iter().map(one).collect::<Vec<_>>().join(", ")
}
