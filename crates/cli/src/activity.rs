//! `abide activity`: reports on an activity attempt that its worker has detached, for completion
//! from outside.

use abide::{ActivityError, Client, ClientError, client::ActivityHandle, ids::RunId};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::{connection::Common, failed::Failed, input::Input};

/// What can be said for an activity.
#[derive(Subcommand)]
pub(crate) enum Command {
    Complete(Complete),
    Fail(Fail),
    Cancel(Cancel),
    Heartbeat(Heartbeat),
}

/// Which attempt is meant: by its token, or by the ids of workflow and activity.
#[derive(Args)]
struct Attempt {
    /// The token that the activity gave away
    #[arg(
        long,
        value_name = "TOKEN",
        required_unless_present = "workflow",
        conflicts_with_all = ["workflow", "activity", "run"]
    )]
    token: Option<String>,
    /// The workflow, for an activity that is named by its id
    #[arg(long, value_name = "ID", requires = "activity")]
    workflow: Option<String>,
    /// The activity's id, as `abide workflow describe` shows it
    #[arg(long, value_name = "ID", requires = "workflow")]
    activity: Option<String>,
    /// Only in this run
    #[arg(long, value_name = "RUN", requires = "workflow")]
    run: Option<uuid::Uuid>,
}

/// Give an activity its result
#[derive(Args)]
#[command(after_help = "Example:
  abide activity complete --token AQGj... --input '{\"paid\": true}'
  abide activity complete --workflow order-7 --activity activity-1 --input 250")]
pub(crate) struct Complete {
    #[command(flatten)]
    attempt: Attempt,
    #[command(flatten)]
    input: Input,
}

/// Let an attempt fail; it is retried as its policy says
#[derive(Args)]
#[command(after_help = "Example:
  abide activity fail --token AQGj... --message 'the card was declined' --non-retryable")]
pub(crate) struct Fail {
    #[command(flatten)]
    attempt: Attempt,
    /// What went wrong
    #[arg(long, short, value_name = "TEXT")]
    message: String,
    /// The name by which programs know the error
    #[arg(long = "type", value_name = "NAME", default_value = "")]
    error_type: String,
    /// It is useless to try again
    #[arg(long)]
    non_retryable: bool,
}

/// Say that an activity was cancelled, as its workflow asked for
#[derive(Args)]
#[command(after_help = "Example:
  abide activity cancel --workflow order-7 --activity activity-1")]
pub(crate) struct Cancel {
    #[command(flatten)]
    attempt: Attempt,
    #[command(flatten)]
    input: Input,
}

/// Say that an attempt goes on, and hear whether it should
#[derive(Args)]
#[command(after_help = "Example:
  abide activity heartbeat --token AQGj... --input '\"half done\"'")]
pub(crate) struct Heartbeat {
    #[command(flatten)]
    attempt: Attempt,
    #[command(flatten)]
    input: Input,
}

impl Attempt {
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
                let should = if cancelled { "it should be cancelled" } else { "it goes on" };
                common.output().say(
                    &json!({ "done": "heartbeat", "cancel_requested": cancelled }),
                    format_args!("the attempt is alive; {should}"),
                )
            }
        }
    }
}

fn done_with(common: &Common, what: &str, said: &str) -> Result<(), Failed> {
    common.output().say(&json!({ "done": what }), format_args!("the attempt {said}"))
}
