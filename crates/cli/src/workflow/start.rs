//! `abide workflow start`.

use std::time::Duration;

use abide::{
    ClientError, ConflictPolicy, ReusePolicy, WorkflowHandle,
    client::{Start as Asked, StartWithUpdate, StartedWithUpdate, Untyped},
    search::AttributeChange,
};
use abide_command::{Common, Failed, Output, time::parse_length};
use abide_core::{payload::Payloads, visible::visible};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use uuid::Uuid;

use super::result::{print_result, result_with_remark};
use crate::{
    input::{Input, named},
    output::payloads,
};

/// Start a workflow
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow start --type hello --input '\"Ada\"' --wait
  abide workflow start --type approval --id order-7 --input '\"a new desk\"' --key order-7-v1
  abide workflow start --type cart --id cart-7 --on-conflict use-existing --update add --update-input '\"lamp\"'")]
pub(crate) struct Start {
    /// Workflow type, as registered by a worker
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    workflow_type: String,
    /// Workflow id [default: type and a new UUID]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Task queue whose workers run it
    #[arg(short, long, value_name = "QUEUE", default_value = "default")]
    queue: String,
    #[command(flatten)]
    input: Input,
    /// What to do if this id has an open run
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = OnConflict::Reject)]
    on_conflict: OnConflict,
    /// Whether the id of a closed workflow may be reused
    #[arg(long, value_enum, value_name = "POLICY", default_value_t = Reuse::Allow)]
    reuse: Reuse,
    /// Idempotency key: a retry with the same key has no further effect
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Delay before the code begins
    #[arg(long, value_name = "TIME", value_parser = parse_length, allow_hyphen_values = true)]
    delay: Option<Duration>,
    /// Time limit for this run
    #[arg(long, value_name = "TIME", value_parser = parse_length, allow_hyphen_values = true)]
    run_timeout: Option<Duration>,
    /// Time limit for this run and all runs that follow it
    #[arg(long, value_name = "TIME", value_parser = parse_length, allow_hyphen_values = true)]
    execution_timeout: Option<Duration>,
    /// Cron schedule that starts a new run each time, such as "0 9 * * *"
    #[arg(long, value_name = "CRON")]
    cron: Option<String>,
    /// Search attribute as NAME=JSON, such as Amount=120; repeat for several
    #[arg(long, value_name = "NAME=JSON")]
    search_attribute: Vec<String>,
    /// Named value that is shown with the run, as NAME=JSON; repeat for several
    #[arg(long, value_name = "NAME=JSON")]
    memo: Vec<String>,
    /// Signal to send with the start, to the new or the open run
    #[arg(long, value_name = "NAME")]
    signal: Option<String>,
    /// Argument of the signal as JSON; repeat for several
    #[arg(long, value_name = "JSON", requires = "signal")]
    signal_input: Vec<String>,
    /// Update to send with the start, to the new or the open run; waits for its outcome
    #[arg(long, value_name = "NAME", conflicts_with = "signal")]
    update: Option<String>,
    /// Argument of the update as JSON; repeat for several
    #[arg(long, value_name = "JSON", requires = "update")]
    update_input: Vec<String>,
    /// Update id: a retry with the same id has no further effect
    #[arg(long, value_name = "ID", requires = "update")]
    update_id: Option<String>,
    /// Keep waiting for the update while the run's code does not fit its history
    #[arg(long, requires = "update")]
    wait_while_blocked: bool,
    /// Wait for the result and print it
    #[arg(short, long)]
    wait: bool,
}

/// What to do if a run is open.
#[derive(Clone, Copy, ValueEnum)]
enum OnConflict {
    /// Refuse the start
    Reject,
    /// Use the open run
    UseExisting,
    /// Terminate the open run first
    TerminateExisting,
}

/// Whether an id may be used again.
#[derive(Clone, Copy, ValueEnum)]
enum Reuse {
    /// Allow reuse
    Allow,
    /// Allow if the last run did not complete
    AllowIfFailed,
    /// Refuse the start
    Reject,
}

impl Start {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let id = self.id.unwrap_or_else(|| format!("{}-{}", self.workflow_type, Uuid::now_v7()));
        let input = self.input.payloads()?;
        let signal = Input::of(self.signal_input).payloads()?;
        let update_input = Input::of(self.update_input).payloads()?;
        let attributes = named(&self.search_attribute, "--search-attribute")?;
        let memo = named(&self.memo, "--memo")?;
        let client = common.client().await?;
        let mut start = client
            .start_untyped(self.workflow_type, id.as_str(), input)
            .queue(self.queue)
            .on_conflict(self.on_conflict.into())
            .reuse(self.reuse.into());
        if let Some(key) = self.key {
            start = start.key(key);
        }
        if let Some(delay) = self.delay {
            start = start.delay(delay);
        }
        if let Some(timeout) = self.run_timeout {
            start = start.run_timeout(timeout);
        }
        if let Some(timeout) = self.execution_timeout {
            start = start.execution_timeout(timeout);
        }
        if let Some(cron) = self.cron {
            start = start.cron(cron);
        }
        for (name, value) in attributes {
            start = start.search_attribute(AttributeChange::untyped(name, &value));
        }
        for (name, value) in memo {
            start = start.memo(name, &value);
        }
        if let Some(name) = self.signal {
            start = start.with_signal_untyped(name, signal);
        }
        let started = match self.update {
            Some(name) => {
                let mut start = start.with_update_untyped(name, update_input);
                if let Some(id) = self.update_id {
                    start = start.id(id);
                }
                if self.wait_while_blocked {
                    start = start.wait_while_blocked();
                }
                Started::with_update(start).await?
            }
            None => Started::alone(start).await?,
        };
        let output = common.output();
        if self.wait {
            started.update(&id)?;
            let result = result_with_remark(&client, &started.handle, output, &id).await;
            let result = result.map_err(|error| Failed::about(&id, error))?;
            return print_result(output, &id, &result);
        }
        started.say(output, &id)
    }
}

/// A started or existing run, and the outcome of the update that came with its start.
struct Started {
    handle: WorkflowHandle<Untyped>,
    new: bool,
    update: Option<Result<Payloads, ClientError>>,
}

impl Started {
    async fn alone(start: Asked<Untyped>) -> Result<Self, Failed> {
        let (handle, new) = start.started().await?;
        Ok(Self { handle, new, update: None })
    }

    async fn with_update(start: StartWithUpdate<Untyped, Payloads>) -> Result<Self, Failed> {
        let StartedWithUpdate { workflow, started, update, .. } = start.outcome().await?;
        Ok(Self { handle: workflow, new: started, update: Some(update) })
    }

    /// What happened to the run, in words.
    fn shown(&self, id: &str) -> String {
        let done = if self.new { "started" } else { "exists" };
        format!("{done} {} (run {})", visible(id), self.run())
    }

    fn run(&self) -> String {
        self.handle.run_id().map(|run| run.to_string()).unwrap_or_default()
    }

    /// The result of the update. If it has none, the error also says that the run exists.
    fn update(&self, id: &str) -> Result<Option<Value>, Failed> {
        match &self.update {
            None => Ok(None),
            Some(Ok(result)) => Ok(Some(payloads(result))),
            Some(Err(error)) => {
                Err(Failed::about(id, error.clone()).after(&format!("{}, but ", self.shown(id))))
            }
        }
    }

    fn say(&self, output: Output, id: &str) -> Result<(), Failed> {
        let mut told = json!({ "workflow": id, "run": self.run(), "started": self.new });
        let mut words = self.shown(id);
        if let Some(result) = self.update(id)? {
            words = format!("{words}\n{result}");
            told["update_result"] = result;
        }
        output.say_lines(&told, words)
    }
}

impl From<OnConflict> for ConflictPolicy {
    fn from(policy: OnConflict) -> Self {
        match policy {
            OnConflict::Reject => Self::Reject,
            OnConflict::UseExisting => Self::UseExisting,
            OnConflict::TerminateExisting => Self::TerminateExisting,
        }
    }
}

impl From<Reuse> for ReusePolicy {
    fn from(policy: Reuse) -> Self {
        match policy {
            Reuse::Allow => Self::Allow,
            Reuse::AllowIfFailed => Self::AllowIfFailed,
            Reuse::Reject => Self::Reject,
        }
    }
}
