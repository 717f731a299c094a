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
        let mut followed = self.target.follow_waits(&client);
        loop {
            let answer = client.wait(followed.next()).await;
            let answer = answer.map_err(|error| self.target.failed(error))?;
            if answer.closed {
                break;
            }
            if !followed.news(&answer) {
                continue;
            }
            let waits = answer.waits;
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
        what if wait.until.is_never() => what,
        what => format!("{what}, until {}", until(wait.until, now)),
    };
    let waits: Vec<_> = waits.iter().map(one).collect();
    let text = if waits.is_empty() { "nothing".into() } else { waits.join("; ") };
    format!("{}  {text}", absolute(now))
}
