//! `abide workflow history`.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use abide::Codecs;
use abide::client::HistoryEvent;
use abide_command::{Common, Failed, Output, time::absolute};
use abide_core::{codec, event::Event};
use clap::Args;
use serde_json::{Map, Value, json};

use super::Target;
use crate::output::fields;

/// Show the events of a run
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow history order-7
  abide workflow history order-7 --follow --json
  abide workflow history order-7 --record tests/order-7.history")]
pub(crate) struct History {
    #[command(flatten)]
    target: Target,
    /// Keep printing new events until the run is closed
    #[arg(short, long)]
    follow: bool,
    /// Write the history to a file, for `abide replay` and `abide::testing::replay_history`
    #[arg(long, value_name = "FILE", conflicts_with = "follow")]
    record: Option<PathBuf>,
}

impl History {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let mut client = common.client().await?;
        if self.record.is_some() {
            // A recorded history stays as it is stored: the worker that replays it has the codecs.
            client = client.with_codecs(Codecs::new());
        }
        let (handle, output) = (self.target.handle(&client), common.output());
        let heading = || match output.json() {
            true => Ok(()),
            false => output.line(line("#", "TIME", "EVENT", "FACTS")),
        };
        if !self.follow {
            let history = handle.history().await.map_err(|error| self.target.failed(error))?;
            if let Some(file) = &self.record {
                return record(&HistoryEvent::all_recorded(history), file, output);
            }
            heading()?;
            return show(&HistoryEvent::all_recorded(history), output);
        }
        heading()?;
        let mut follower = handle.follow_history();
        while let Some(events) = follower.next().await.map_err(|error| self.target.failed(error))? {
            show(&HistoryEvent::all_recorded(events), output)?;
        }
        Ok(())
    }
}

fn record(events: &[Event], file: &Path, output: Output) -> Result<(), Failed> {
    std::fs::write(file, codec::encode_events(events))
        .map_err(|error| Failed::usage(format_args!("{}: {error}", file.display())))?;
    let count = events.len();
    output.say(
        &json!({ "done": "recorded", "file": file, "events": count }),
        format_args!("recorded {count} events in {}", file.display()),
    )
}

fn show(events: &[Event], output: Output) -> Result<(), Failed> {
    events.iter().try_for_each(|event| {
        let (name, facts) = (event.body.fact.name(), fields(&event.body.fact));
        let object = || {
            json!({
                "number": event.number, "time": event.time.to_string(), "event": name,
                "facts": facts,
            })
        };
        if output.json() {
            return output.object(&object());
        }
        output.line(line(&event.number.to_string(), &absolute(event.time), name, &brief(&facts)))
    })
}

/// Events are printed one by one, so their columns have fixed widths.
fn line(number: &str, time: &str, event: &str, facts: &str) -> String {
    format!("{number:>5}  {time:20}  {event:23}  {facts}").trim_end().to_owned()
}

/// All facts on one line, with those of a nested object beside the others.
fn brief(facts: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (name, value) in facts {
        match value {
            Value::Null => {}
            Value::Object(inner) if name == "spec" || name == "blocked" => {
                text.push_str(&brief(inner));
                text.push(' ');
            }
            Value::Object(inner) if name == "failure" => {
                let message = inner.get("message").unwrap_or(&Value::Null);
                let _ = write!(text, "{name}={message} ");
            }
            Value::String(plain) if plain_word(plain) => {
                let _ = write!(text, "{name}={plain} ");
            }
            value => {
                let _ = write!(text, "{name}={value} ");
            }
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Whether a text needs no quotes: it cannot pass for other facts, or for an event of its own.
fn plain_word(text: &str) -> bool {
    !text.contains(|letter: char| letter.is_whitespace() || letter.is_control() || letter == '"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_stand_on_one_line() {
        let facts = json!({
            "run": "7", "spec": { "type": "hello", "cron": null }, "input": { "a": 1 },
            "failure": { "message": "too late", "cause": null }, "reason": "a b",
            "workflow": "x\n    2  RunCompleted",
        });
        let Value::Object(facts) = facts else { panic!("an object") };
        assert_eq!(
            brief(&facts),
            "failure=\"too late\" input={\"a\":1} reason=\"a b\" run=7 type=hello \
             workflow=\"x\\n    2  RunCompleted\""
        );
    }
}
