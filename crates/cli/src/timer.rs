//! `abide timer reschedule`: moves the end of a wait, named by the wait or by its timer.

use std::time::Duration;

use abide::Timestamp;
use abide_command::{
    Common, Failed,
    time::{absolute, moment, parse_length, parse_moment, relative, system_now},
};
use abide_core::run::Movable;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::{waits::find, workflow::Target};

#[derive(Subcommand)]
pub(crate) enum Command {
    Reschedule(Reschedule),
}

/// Change when a sleep ends or when a wait reaches its deadline
///
/// The wait may be for a signal, a condition or an approval.
#[derive(Args)]
#[command(after_help = "Example:
  abide timer reschedule order-7 timer-1 --in 2h
  abide timer reschedule order-7 timer-1 --at 2026-12-24T18:00:00Z
  abide timer reschedule order-7 approval:purchase --in 3d

`abide waits list` shows the timers.")]
#[group(id = "when", required = true, multiple = false, args = ["at", "after"])]
pub(crate) struct Reschedule {
    #[command(flatten)]
    target: Target,
    /// Timer id, or the id or name of the wait that it ends
    timer: String,
    /// New due time, such as 2026-12-24T18:00:00Z
    #[arg(long, value_name = "MOMENT", value_parser = parse_moment)]
    at: Option<Timestamp>,
    /// New due time, relative to now, such as 2h
    #[arg(long = "in", value_name = "TIME", value_parser = parse_length, allow_hyphen_values = true)]
    after: Option<Duration>,
    /// Idempotency key: a retry with the same key has no further effect
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        let Self::Reschedule(reschedule) = self;
        let Reschedule { target, timer, at, after, key } = reschedule;
        let client = common.client().await?;
        let fire_at = match at {
            Some(at) => at,
            None => moment(after.unwrap_or_default())?,
        };
        let handle = target.handle(&client);
        let open = target.waits(&client).await.map_err(|error| target.failed(error))?;
        let (mut moved, timer) = match find(&open, &timer)? {
            Some(wait) => {
                let timer = wait.timer.as_ref().map_or(timer, ToString::to_string);
                (handle.reschedule(Movable::Wait(wait.key.clone()), fire_at), timer)
            }
            // It may repeat a move of a timer that has fired since: the engine knows.
            None => (handle.reschedule_timer(timer.as_str(), fire_at), timer),
        };
        if let Some(after) = after {
            moved = moved.from_now(after);
        }
        if let Some(key) = key {
            moved = moved.key(key);
        }
        // A repeat moves nothing: what counts is the due time of the first request.
        let fire_at = moved.await.map_err(|error| target.failed(error))?;
        let due = match fire_at {
            Some(at) => format!("is due {} ({})", relative(at, system_now()), absolute(at)),
            None => "was moved by an earlier request with this key".into(),
        };
        common.output().say(
            &json!({
                "done": "rescheduled", "workflow": target.id, "timer": timer,
                "fire_at": fire_at.map(|at| at.to_string()),
            }),
            format_args!("timer {timer} of {} {due}", target.id),
        )
    }
}
