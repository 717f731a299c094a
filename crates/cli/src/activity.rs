//! `abide activity`: reports on an activity attempt that its worker has detached, for completion
//! from outside.

use abide::{ActivityError, Client, ClientError, client::ActivityHandle, ids::RunId};
use abide_command::{Common, Failed};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::input::Input;

#[derive(Subcommand)]
pub(crate) enum Command {
    Complete(Complete),
    Fail(Fail),
    Cancel(Cancel),
    Heartbeat(Heartbeat),
}

/// Which attempt is meant: by its token, or by the ids of workflow and activity.
#[derive(Args)]
struct AttemptArgs {
    /// Token of the attempt, from `ActivityContext::token`
    #[arg(
        long,
        value_name = "TOKEN",
        required_unless_present = "workflow",
        conflicts_with_all = ["workflow", "activity", "run"]
    )]
    token: Option<String>,
    /// Workflow id, to address the activity by id instead of token
    #[arg(long, value_name = "ID", requires = "activity")]
    workflow: Option<String>,
    /// Activity id, as shown by `abide workflow describe`
    #[arg(long, value_name = "ID", requires = "workflow")]
    activity: Option<String>,
    /// Run id [default: the current run]
    #[arg(long, value_name = "RUN", requires = "workflow")]
    run: Option<uuid::Uuid>,
}

/// Complete an activity with a result
#[derive(Args)]
#[command(after_help = "Example:
  abide activity complete --token AQGj... --input '{\"paid\": true}'
  abide activity complete --workflow order-7 --activity activity-1 --input 250")]
pub(crate) struct Complete {
    #[command(flatten)]
    attempt: AttemptArgs,
    #[command(flatten)]
    input: Input,
}

/// Fail an attempt; the activity's retry policy decides what follows
#[derive(Args)]
#[command(after_help = "Example:
  abide activity fail --token AQGj... --message 'the card was declined' --non-retryable")]
pub(crate) struct Fail {
    #[command(flatten)]
    attempt: AttemptArgs,
    /// Error message
    #[arg(long, short, value_name = "TEXT")]
    message: String,
    /// Error type, for programs to match on
    #[arg(long = "type", value_name = "NAME", default_value = "")]
    error_type: String,
    /// Do not retry the activity
    #[arg(long)]
    non_retryable: bool,
}

/// Confirm that an activity was cancelled, as its workflow requested
#[derive(Args)]
#[command(after_help = "Example:
  abide activity cancel --workflow order-7 --activity activity-1")]
pub(crate) struct Cancel {
    #[command(flatten)]
    attempt: AttemptArgs,
    #[command(flatten)]
    input: Input,
}

/// Record a heartbeat, and report whether cancellation is requested
#[derive(Args)]
#[command(after_help = "Example:
  abide activity heartbeat --token AQGj... --input '\"half done\"'")]
pub(crate) struct Heartbeat {
    #[command(flatten)]
    attempt: AttemptArgs,
    #[command(flatten)]
    input: Input,
}

impl AttemptArgs {
    fn handle(&self, client: &Client) -> ActivityHandle {
        let Some(workflow) = &self.workflow else {
            return client.activity(self.token.as_deref().unwrap_or_default());
        };
        let activity = self.activity.as_deref().unwrap_or_default();
        let handle = client.activity_by_id(workflow.as_str(), activity);
        match self.run {
            Some(run) => handle.in_run(RunId::new(run)),
            None => handle,
        }
    }

    fn failed(&self, error: ClientError) -> Failed {
        Failed::about(self.workflow.as_deref().unwrap_or("ID"), error)
    }
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        match self {
            Self::Complete(Complete { attempt, input }) => {
                let result = input.payloads()?;
                let handle = attempt.handle(&common.client().await?);
                let done = handle.complete_untyped(result).await;
                done.map_err(|error| attempt.failed(error))?;
                done_with(common, "completed", "has completed")
            }
            Self::Fail(Fail { attempt, message, error_type, non_retryable }) => {
                let mut error = ActivityError::new(message).error_type(error_type);
                if non_retryable {
                    error = error.non_retryable();
                }
                let handle = attempt.handle(&common.client().await?);
                handle.fail(error).await.map_err(|error| attempt.failed(error))?;
                done_with(common, "failed", "has failed")
            }
            Self::Cancel(Cancel { attempt, input }) => {
                let details = input.payloads()?;
                let handle = attempt.handle(&common.client().await?);
                let done = handle.cancelled_untyped(details).await;
                done.map_err(|error| attempt.failed(error))?;
                done_with(common, "cancelled", "was cancelled")
            }
            Self::Heartbeat(Heartbeat { attempt, input }) => {
                let details = input.payloads()?;
                let handle = attempt.handle(&common.client().await?);
                let cancelled = handle.heartbeat_untyped(details).await;
                let cancelled = cancelled.map_err(|error| attempt.failed(error))?;
                let should =
                    if cancelled { "cancellation is requested" } else { "it may continue" };
                common.output().say(
                    &json!({ "done": "heartbeat", "cancel_requested": cancelled }),
                    format_args!("heartbeat recorded; {should}"),
                )
            }
        }
    }
}

fn done_with(common: &Common, what: &str, said: &str) -> Result<(), Failed> {
    common.output().say(&json!({ "done": what }), format_args!("the attempt {said}"))
}
