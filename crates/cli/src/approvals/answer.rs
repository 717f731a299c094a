//! `abide approvals decide`, `delegate` and `withdraw`: people's answers to a request.

use std::{sync::Arc, time::Duration};

use abide::{Client, ClientError, payload::PayloadValue as _};
use abide_command::{Common, Failed, quoted};
use abide_core::{
    event::{Approval, Fact, UpdateAccepted},
    run::{Liveness, ShownWait},
    visible::visible,
};
use clap::Args;
use serde_json::{Value, json};

use crate::{input::parse_json, output::payloads, workflow::Target};

/// Name of the update through which workflows built with the SDK take decisions.
const UPDATE: &str = "decide";

/// How long to wait for a freshly started workflow to make its request.
const PATIENCE: Duration = Duration::from_secs(2);

/// Decide a request, and print the workflow's reply
#[derive(Args)]
#[command(after_help = "Example:
  abide approvals decide order-7 approve --by anna
  abide approvals decide order-7 reject --by anna --role managers --comment 'too expensive'
  abide approvals decide order-7 '{\"pay_only\":{\"euros\":40}}' --by anna")]
pub(crate) struct Decide {
    #[command(flatten)]
    target: Target,
    /// One of the request's choices; JSON if the choice carries data
    choice: String,
    #[command(flatten)]
    sender: Sender,
}

/// Delegate a request to another person, who decides in your place
#[derive(Args)]
#[command(after_help = "Example:
  abide approvals delegate order-7 linus --by anna --comment 'on holiday'")]
pub(crate) struct Delegate {
    #[command(flatten)]
    target: Target,
    /// Person who decides instead
    to: String,
    #[command(flatten)]
    sender: Sender,
}

/// Withdraw a request, as its requester
#[derive(Args)]
#[command(after_help = "Example:
  abide approvals withdraw order-7 --by carl --comment 'no longer needed'")]
pub(crate) struct Withdraw {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    sender: Sender,
}

/// Who answers which request.
#[derive(Args)]
struct Sender {
    /// Your name
    #[arg(long, value_name = "NAME")]
    by: String,
    /// Role that you have; repeat for several
    #[arg(long, value_name = "ROLE")]
    role: Vec<String>,
    /// Reason, recorded with the answer
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// Request id; required if the workflow has several or the request has timed out
    #[arg(long, value_name = "REQUEST")]
    request: Option<String>,
    /// Idempotency key: a retry with the same key has no further effect
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Keep waiting while the workflow's code does not fit its history
    #[arg(long)]
    wait_while_blocked: bool,
}

impl Decide {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let choice = choice(&self.choice)?;
        self.sender.say(common, &self.target, "decision", choice).await
    }
}

impl Delegate {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        self.sender.say(common, &self.target, "delegate_to", self.to.into()).await
    }
}

impl Withdraw {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        self.sender.say(common, &self.target, "withdraw", Value::Null).await
    }
}

impl Sender {
    /// Sends an answer with this step, and prints the workflow's reply.
    async fn say(
        self,
        common: &Common,
        target: &Target,
        step: &'static str,
        value: Value,
    ) -> Result<(), Failed> {
        let client = common.client().await?;
        let (request, update) = self.place(target, &client).await?;
        let answer = json!({
            "request": request, step: value, "approver": self.by, "roles": self.role,
            "comment": self.comment, "key": self.key,
        });
        let input = answer.to_payload().map_err(Failed::usage)?;
        let mut update = target.handle(&client).update_untyped(update, Vec::from_iter(input));
        if let Some(id) = self.update_id() {
            update = update.id(id);
        }
        if self.wait_while_blocked {
            update = update.wait_while_blocked();
        }
        let told = payloads(&update.await.map_err(|error| target.failed(error))?);
        common.output().say(
            &json!({ "workflow": target.id, "request": request, step: value, "answer": told }),
            in_words(&request, &told),
        )
    }

    /// The id of the update that carries this answer: a repeat with the same key is the same update,
    /// whose receipt the engine still has when the request is decided or the run is closed.
    fn update_id(&self) -> Option<String> {
        self.key.as_ref().map(|key| format!("answer:{}:{key}", self.by))
    }

    /// The request that this answer was accepted for before, and the name of its update.
    async fn earlier_place(
        &self,
        target: &Target,
        client: &Client,
    ) -> Result<Option<(String, String)>, Failed> {
        let Some(id) = self.update_id().filter(|_| self.request.is_none()) else {
            return Ok(None);
        };
        let events = target.handle(client).history().await;
        let events = events.map_err(|error| target.failed(error))?;
        let accepted = events.iter().find_map(|event| match event.fact() {
            Fact::UpdateAccepted(accepted) if accepted.update.as_str() == id => Some(accepted),
            _ => None,
        });
        Ok(accepted.and_then(|UpdateAccepted { request, .. }| {
            let answered = payloads(&request.input);
            Some((answered.get("request")?.as_str()?.to_owned(), request.name.clone()))
        }))
    }

    /// Finds the request, and the name of the update that takes the answer.
    async fn place(&self, target: &Target, client: &Client) -> Result<(String, String), Failed> {
        let id = &target.id;
        if let Some(earlier) = self.earlier_place(target, client).await? {
            return Ok(earlier);
        }
        let waits = waits(target, client).await.map_err(|error| target.failed(error))?;
        let open: Vec<_> = waits.iter().filter_map(approval_of).collect();
        match (&self.request, open.as_slice()) {
            // It may have timed out or been decided since: the workflow knows.
            (Some(request), _) => {
                let named = open.iter().find(|(_, approval)| approval.request == *request);
                let update = named.map_or(UPDATE, |(_, approval)| approval.update.as_str());
                Ok((request.clone(), update.into()))
            }
            (None, [(_, approval)]) => Ok((approval.request.clone(), approval.update.clone())),
            (None, []) => Err(Failed::refused(format_args!("{} has no open request", visible(id)))
                .hint(format!("`abide waits show {}` shows what it waits for", quoted(id)))),
            (None, several) => {
                let what = visible(&format!("{id} has several open requests: {}", listed(several)));
                Err(Failed::usage(what).hint("choose one with --request"))
            }
        }
    }
}

/// The run's waits. A run whose code is about to continue may ask in a moment, so this waits a
/// little.
async fn waits(target: &Target, client: &Client) -> Result<Vec<ShownWait>, ClientError> {
    let described = target.describe(client).await?;
    let goes_on = matches!(described.liveness, Liveness::TaskWaiting | Liveness::TaskRunning);
    if !goes_on || described.waits.iter().any(|wait| approval_of(wait).is_some()) {
        return Ok(described.waits);
    }
    let mut followed = target.follow_waits(client);
    let asked = async {
        loop {
            let answer = client.wait(followed.next()).await?;
            followed.news(&answer);
            let asks = answer.waits.iter().any(|wait| approval_of(wait).is_some());
            if asks || answer.closed {
                return Ok(Arc::unwrap_or_clone(answer.waits));
            }
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or(Ok(described.waits))
}

/// The workflow's reply in words, if it is the receipt that requests return.
fn in_words(request: &str, answer: &Value) -> String {
    match answer.get("effect").and_then(Value::as_str) {
        Some(effect) => format!("{effect}: {request}"),
        None => answer.to_string(),
    }
}

/// A plain name stays a string; a choice that holds data is typed as JSON.
fn choice(typed: &str) -> Result<Value, Failed> {
    if !typed.starts_with('{') {
        return Ok(typed.into());
    }
    parse_json(typed, "the decision")
}

/// The subject of the wait and its approval, if a person decides it.
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
        assert!(choice("{pay}").unwrap_err().to_string().contains("not valid JSON"));
        let deep = choice(&"{\"a\":".repeat(1 << 18)).unwrap_err().to_string();
        assert!(deep.contains("recursion limit exceeded"), "{deep}");
    }
}
