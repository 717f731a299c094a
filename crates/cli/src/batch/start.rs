//! `abide batch start`.

use abide::{client::BatchStart, list::RunFilter};
use abide_command::{Common, Failed};
use clap::Args;
use serde_json::json;

use super::object;
use crate::input::Input;

/// Runs that a preview shows.
const SAMPLE: usize = 5;

/// Do something to every run that a query finds
///
/// The engine does it in the background, also if this program ends or the engine restarts. Runs that
/// start later are left out.
#[derive(Args)]
#[command(after_help = "Example:
  abide batch start --query \"WorkflowType = 'order' AND ExecutionStatus = 'Failed'\" --retry --dry-run
  abide batch start --query \"Region = 'eu' AND ExecutionStatus = 'Running'\" --terminate --rate 20
  abide batch start --query \"CloseTime < '2026-01-01'\" --delete")]
pub(crate) struct Start {
    /// Which runs, such as "WorkflowType = 'order' AND ExecutionStatus = 'Running'"
    #[arg(long, value_name = "QUERY")]
    query: String,
    #[command(flatten)]
    action: Action,
    #[command(flatten)]
    input: Input,
    /// Runs per second at most
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    rate: u32,
    /// Reason, recorded in histories
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Id of the batch: a retry with the same id has no further effect
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Show how many runs there are, and some of them, and do nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Action {
    /// Ask each run to cancel
    #[arg(long)]
    cancel: bool,
    /// Terminate each run
    #[arg(long)]
    terminate: bool,
    /// Delete each run; open ones refuse it
    #[arg(long)]
    delete: bool,
    /// Send each run this signal, with --input
    #[arg(long, value_name = "NAME")]
    signal: Option<String>,
    /// Try the step that failed again
    #[arg(long)]
    retry: bool,
    /// Go back to an earlier task: first, last, failure or build:ID
    #[arg(long, value_name = "TASK", value_parser = place)]
    reset: Option<String>,
}

fn place(text: &str) -> Result<String, String> {
    match text {
        "first" | "last" | "failure" => Ok(text.to_owned()),
        _ if text.strip_prefix("build:").is_some_and(|build| !build.is_empty()) => {
            Ok(text.to_owned())
        }
        _ => Err("expected first, last, failure or build:ID".into()),
    }
}

impl Start {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        if self.dry_run {
            return self.preview(common).await;
        }
        let mut batch = client.batch(&self.query).rate(self.rate).reason(&self.reason);
        if let Some(id) = &self.id {
            batch = batch.id(id);
        }
        let started: BatchStart = match (self.action.signal, self.action.reset.as_deref()) {
            (Some(name), _) => batch.signal_untyped(name, self.input.payloads()?),
            (_, Some("first")) => batch.reset_to_first_task(),
            (_, Some("last")) => batch.reset_to_last_task(),
            (_, Some("failure")) => batch.retry(),
            (_, Some(build)) => batch.reset_to_build(build.trim_start_matches("build:")),
            _ if self.action.cancel => batch.cancel(),
            _ if self.action.terminate => batch.terminate(),
            _ if self.action.delete => batch.delete(),
            _ => batch.retry(),
        };
        let started = started.await?;
        common.output().say(
            &object(&started),
            format_args!(
                "started batch {}: {} of {} runs; `abide batch show {}` shows how far it is",
                started.id, started.action, started.total, started.id
            ),
        )
    }

    async fn preview(&self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let filter = || RunFilter::new().query(self.query.as_str());
        let count = client.count_runs(filter()).await?;
        let rows = client.runs(filter()).take(SAMPLE).await?;
        let sample: Vec<_> = rows.iter().map(|row| row.workflow.to_string()).collect();
        let shown = match sample.is_empty() {
            true => String::new(),
            false => format!(", such as {}", sample.join(", ")),
        };
        common.output().say(
            &json!({ "count": count, "sample": sample }),
            format_args!("{count} runs{shown}; nothing is done"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_differs_between_runs_is_refused() {
        for good in ["first", "last", "failure", "build:7"] {
            assert!(place(good).is_ok(), "{good}");
        }
        for bad in ["", "event:4", "build:", "second"] {
            assert!(place(bad).is_err(), "{bad}");
        }
    }
}
