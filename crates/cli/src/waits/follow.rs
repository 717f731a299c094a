//! `abide waits follow`.

use abide_command::{
    Common, Failed,
    time::{absolute, system_now},
};
use abide_core::run::ShownWait;
use clap::Args;
use serde_json::json;

use super::{object, until, waits_for};
use crate::workflow::Target;

/// Print a run's waits whenever they change, until the run is closed
#[derive(Args)]
#[command(after_help = "Example:
  abide waits follow order-7
  abide waits follow order-7 --json")]
pub(crate) struct Follow {
    #[command(flatten)]
    target: Target,
}

impl Follow {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let client = common.client().await?;
        let (id, output) = (&self.target.id, common.output());
        let mut follower = self.target.handle(&client).follow_waits();
        let failed = |error| self.target.failed(error);
        while let Some(waits) = follower.next().await.map_err(failed)? {
            let waits_of_run: Vec<_> = waits.iter().map(object).collect();
            let change = json!({ "workflow": id, "closed": false, "waits": waits_of_run });
            output.say(&change, line(&waits))?;
        }
        let change = json!({ "workflow": id, "closed": true, "waits": [] });
        output.say(&change, format_args!("{}  {id} is closed", absolute(system_now())))
    }
}

/// All waits, on one line.
fn line(waits: &[ShownWait]) -> String {
    let now = system_now();
    let one = |wait: &ShownWait| match waits_for(wait.kind, &wait.name) {
        what if wait.until.never() => what,
        what => format!("{what}, until {}", until(wait.until, now)),
    };
    let waits: Vec<_> = waits.iter().map(one).collect();
    let text = if waits.is_empty() { "nothing".into() } else { waits.join("; ") };
    format!("{}  {text}", absolute(now))
}
