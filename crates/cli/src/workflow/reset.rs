//! `abide workflow reset` and `abide workflow retry`.

use abide::client;
use abide_command::{Common, Failed};
use clap::{Args, ValueEnum};

use super::Target;

/// Go back to an earlier workflow task, in a new run
///
/// The new run begins with the history up to that task, and its code runs the task again. An open run is
/// terminated. Signals and updates that came later follow; open timers, activities and children are taken
/// over.
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow reset order-7 --to first
  abide workflow reset order-7 --to event:14 --reason 'wrong price' --signals drop
  abide workflow reset order-7 --to build:2026-03-01")]
pub(crate) struct Reset {
    /// The task: first, last, event:NUMBER, build:ID, or failure for the last one before the step that
    /// failed
    #[arg(long, value_name = "TASK", value_parser = place)]
    to: Place,
    #[command(flatten)]
    args: ResetArgs,
}

/// Try the step that failed again, and go on from there, in a new run
///
/// The step is the last activity or child that failed. What was done before it stays done. If the code
/// failed by itself, its last task runs again.
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow retry order-7")]
pub(crate) struct Retry {
    #[command(flatten)]
    args: ResetArgs,
}

#[derive(Args)]
struct ResetArgs {
    #[command(flatten)]
    target: Target,
    /// What happens to signals that came after the task
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Later::Keep)]
    signals: Later,
    /// What happens to updates that came after the task
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Later::Keep)]
    updates: Later,
    /// Reason, recorded in both histories
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Idempotency key: a retry with the same key has no further effect
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

/// What happens to later inputs.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Later {
    /// The new run gets them
    Keep,
    /// The new run does not get them
    Drop,
}

/// A task to go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    First,
    Last,
    Event(u64),
    Build(String),
    Failure,
}

fn place(text: &str) -> Result<Place, String> {
    let event = |number: &str| {
        number.parse().map_err(|_| format!("{number:?} is not the number of an event"))
    };
    match text.split_once(':') {
        None if text == "first" => Ok(Place::First),
        None if text == "last" => Ok(Place::Last),
        None if text == "failure" => Ok(Place::Failure),
        Some(("event", number)) => event(number).map(Place::Event),
        Some(("build", build)) if !build.is_empty() => Ok(Place::Build(build.to_owned())),
        _ => Err("expected first, last, failure, event:NUMBER or build:ID".into()),
    }
}

impl Reset {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        self.args.run(common, self.to).await
    }
}

impl Retry {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        self.args.run(common, Place::Failure).await
    }
}

impl ResetArgs {
    async fn run(self, common: &Common, to: Place) -> Result<(), Failed> {
        let client = common.client().await?;
        // The run is named, so that a repeat cannot reset the one that this makes.
        let shown =
            self.target.describe(&client).await.map_err(|error| self.target.failed(error))?;
        let reset = self.target.handle(&client).run(shown.run).reset().reason(self.reason.as_str());
        let reset: client::Reset = match to {
            Place::First => reset.to_first_task(),
            Place::Last => reset.to_last_task(),
            Place::Event(number) => reset.to_event(number),
            Place::Build(build) => reset.to_build(build),
            Place::Failure => reset.to_failure(),
        };
        let reset = if self.signals == Later::Drop { reset.drop_signals() } else { reset };
        let reset = if self.updates == Later::Drop { reset.drop_updates() } else { reset };
        let reset = match self.key.as_deref() {
            Some(key) => reset.key(key),
            None => reset,
        };
        let run = reset.await.map_err(|error| self.target.failed(error))?;
        let id = &self.target.id;
        common.output().say(
            &serde_json::json!({ "done": "reset", "workflow": id, "run": run.to_string() }),
            format_args!("reset {id}: run {run} goes on"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_named_in_five_ways() {
        assert_eq!(place("first"), Ok(Place::First));
        assert_eq!(place("last"), Ok(Place::Last));
        assert_eq!(place("failure"), Ok(Place::Failure));
        assert_eq!(place("event:14"), Ok(Place::Event(14)));
        assert_eq!(place("build:a:b"), Ok(Place::Build("a:b".into())));
        for bad in ["", "event", "event:x", "event:-1", "build:", "second", "first:1"] {
            assert!(place(bad).is_err(), "{bad:?}");
        }
    }
}
