//! `abide approvals`: what waits for a person's decision, and the decision.

use abide::{Client, approval::concerns, payload::Data as _};
use abide_core::{
    event::{Approval, WaitDetails},
    list::{WaitFilter, WaitKind, WaitRow},
    run::ShownWait,
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::{
    connection::Common,
    failed::Failed,
    output::{Table, payloads, system_now},
    waits::{Filter, Paged, details, pages, row_object, until},
    workflow::Target,
};

/// The update of workflows that ask as the SDK does.
const UPDATE: &str = "decide";

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
  abide approvals decide order-7 reject --by anna --role managers --comment 'too expensive'
  abide approvals decide order-7 '{\"pay_only\":{\"euros\":40}}' --by anna")]
pub(crate) struct Decide {
    #[command(flatten)]
    target: Target,
    /// The decision: one of the request's choices; as JSON if it holds data
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
    /// The request, if the workflow has several, or if its time is up
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
            self.actors.is_empty() || concerns(&details.actors, &self.actors)
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
        let choice = choice(&self.choice)?;
        let client = common.client().await?;
        let (request, update) = self.place(&client).await?;
        let decision = json!({
            "request": request, "decision": choice, "approver": self.by, "roles": self.role,
            "comment": self.comment, "key": self.key,
        });
        let input = decision.to_payload().map_err(Failed::usage)?;
        let update = self.target.handle(&client).update_untyped(update, Vec::from_iter(input));
        let answer = payloads(&update.await.map_err(|error| self.target.failed(error))?);
        common.output().say(
            &json!({
                "workflow": self.target.id, "request": request, "decision": choice,
                "answer": answer,
            }),
            told(&request, &answer),
        )
    }

    /// The request that is meant, and the update that takes the decision.
    async fn place(&self, client: &Client) -> Result<(String, String), Failed> {
        let id = &self.target.id;
        let waits = self.target.handle(client).waits().await;
        let waits = waits.map_err(|error| self.target.failed(error))?;
        let open: Vec<_> = waits.iter().filter_map(approval_of).collect();
        match (&self.request, open.as_slice()) {
            // Perhaps its time is up, or it was decided: the workflow knows.
            (Some(request), _) => {
                let named = open.iter().find(|(_, approval)| approval.request == *request);
                let update = named.map_or(UPDATE, |(_, approval)| approval.update.as_str());
                Ok((request.clone(), update.into()))
            }
            (None, [(_, approval)]) => Ok((approval.request.clone(), approval.update.clone())),
            (None, []) => Err(Failed::refused(format_args!("{id} waits for no decision"))
                .hint(format!("`abide waits show {id}` shows what it waits for"))),
            (None, several) => {
                let what = format!("{id} has several open requests: {}", listed(several));
                Err(Failed::usage(what).hint("name one with --request"))
            }
        }
    }
}

/// What the workflow answered, in words, if it is the receipt that requests give.
fn told(request: &str, answer: &Value) -> String {
    match answer.get("effect").and_then(Value::as_str) {
        Some(effect) => format!("{effect}: {request}"),
        None => answer.to_string(),
    }
}

/// A name as it is; a choice that holds data is typed as JSON.
fn choice(typed: &str) -> Result<Value, Failed> {
    if !typed.starts_with('{') {
        return Ok(typed.into());
    }
    serde_json::from_str(typed)
        .map_err(|error| Failed::usage(format_args!("the decision is not JSON: {error}")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_a_name_or_json() {
        assert_eq!(choice("approve").unwrap(), json!("approve"));
        let with_data = choice("{\"pay_only\":{\"euros\":40}}").unwrap();
        assert_eq!(with_data, json!({ "pay_only": { "euros": 40 } }));
        assert!(choice("{pay}").unwrap_err().to_string().contains("not JSON"));
    }
}
