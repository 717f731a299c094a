//! `abide waits show`.

use abide_command::{
    Common, Failed, Table, quoted,
    time::{absolute, relative, system_now},
};
use abide_core::{run::ShownWait, visible::visible};
use clap::Args;

use super::{ended_by, find, object, times, until, waits_for};
use crate::{
    output::{condition, mover, origin, payload},
    workflow::Target,
};

/// Show the waits of a run in detail
#[derive(Args)]
#[command(after_help = "Example:
  abide waits show order-7
  abide waits show order-7 timer-1")]
pub(crate) struct Show {
    #[command(flatten)]
    target: Target,
    /// Wait id, timer id or wait name [default: all waits]
    #[arg(value_name = "WAIT")]
    wait: Option<String>,
}

impl Show {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let (id, output) = (&self.target.id, common.output());
        let open = self.target.waits(&client).await;
        let mut open = open.map_err(|error| self.target.failed(error))?;
        if let Some(named) = &self.wait {
            let found = find(&open, named)?.ok_or_else(|| {
                Failed::refused(format_args!("{} has no open wait {named:?}", visible(id)))
                    .hint(format!("`abide waits show {}` shows its open waits", quoted(id)))
            })?;
            open = vec![found.clone()];
        }
        if output.json() {
            return open.iter().try_for_each(|wait| output.object(&object(wait)));
        }
        if open.is_empty() {
            return output.line(format_args!("{id} waits for nothing"));
        }
        let facts: Vec<_> = open.iter().map(|wait| facts(wait).to_string()).collect();
        output.lines(facts.join("\n\n"))
    }
}

fn facts(wait: &ShownWait) -> Table {
    let now = system_now();
    let mut facts = vec![
        ("wait", wait.key.to_string()),
        ("waits for", waits_for(wait.kind, &wait.name)),
        ("origin", wait.origin.as_ref().map_or_else(|| "unknown".into(), origin)),
        ("since", format!("{} ({})", relative(wait.since, now), absolute(wait.since))),
        ("until", until(wait.until, now)),
        ("ended by", ended_by(wait.kind, &wait.name, wait.until)),
    ];
    let (_, fingerprint) = condition(wait.origin.as_ref());
    facts.extend(fingerprint.map(|fingerprint| ("fingerprint", fingerprint.to_owned())));
    facts.extend(wait.timer.as_ref().map(|timer| ("timer", timer.to_string())));
    if let Some(not_after) = wait.guards.not_after {
        facts.push(("latest end", absolute(not_after)));
    }
    if let Some(bound) = wait.guards.max_extensions {
        facts.push(("moves allowed", times(bound)));
    }
    if let Some(by) = &wait.moved_by {
        facts.push(("moved", format!("{} from outside, last by {}", times(wait.moves), mover(by))));
    }
    if let Some(details) = &wait.details {
        facts.extend((!details.subject.is_empty()).then(|| ("subject", details.subject.clone())));
        facts.extend((!details.actors.is_empty()).then(|| ("may act", details.actors.join(", "))));
        let data = details.data.iter();
        facts.extend(data.map(|(name, value)| ("data", format!("{name} = {}", payload(value)))));
        if let Some(approval) = &details.approval {
            facts.push(("request", approval.request.clone()));
            facts.push(("choices", approval.choices.join(", ")));
        }
    }
    Table::facts(facts)
}
