//! `abide schedule`: what starts workflows by itself, at its times.

mod backfill;
mod create;
mod delete;
mod describe;
mod list;
mod options;
mod overlap;
mod pause;
mod trigger;
mod update;

use abide::{Client, ClientError};
use abide_command::{Common, Failed};
use abide_core::{
    ids::{Key, WorkflowKey},
    operation::{ChangeSchedule, DescribeSchedule, ScheduleDescription},
    schedule::{ScheduleChange, key_of},
};
use clap::{Args, Subcommand};
use serde_json::json;
use uuid::Uuid;

#[derive(Subcommand)]
pub(crate) enum Command {
    Create(Box<create::Create>),
    List(list::List),
    Describe(describe::Describe),
    Update(Box<update::Update>),
    Trigger(trigger::Trigger),
    Backfill(backfill::Backfill),
    Pause(pause::Pause),
    Unpause(pause::Unpause),
    Delete(delete::Delete),
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        match self {
            Self::Create(command) => command.run(common).await,
            Self::List(command) => command.run(common).await,
            Self::Describe(command) => command.run(common).await,
            Self::Update(command) => command.run(common).await,
            Self::Trigger(command) => command.run(common).await,
            Self::Backfill(command) => command.run(common).await,
            Self::Pause(command) => command.run(common).await,
            Self::Unpause(command) => command.run(common).await,
            Self::Delete(command) => command.run(common).await,
        }
    }
}

/// Which schedule.
#[derive(Args)]
pub(super) struct Target {
    /// Schedule id
    #[arg(value_name = "ID")]
    id: String,
}

impl Target {
    fn workflow(&self, client: &Client) -> WorkflowKey {
        key_of(client.namespace().clone(), &self.id)
    }

    async fn describe(&self, client: &Client) -> Result<ScheduleDescription, Failed> {
        let described = client.ask(DescribeSchedule { workflow: self.workflow(client) }).await;
        described.map(|described| *described).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: ClientError) -> Failed {
        let id = &self.id;
        match error {
            ClientError::NotFound => Failed::refused(format_args!("there is no schedule {id:?}"))
                .hint("`abide schedule list` shows the existing ones"),
            ClientError::AlreadyExists { .. } => {
                Failed::refused(format_args!("schedule {id:?} already exists"))
                    .hint("`abide schedule update` changes it")
            }
            error => Failed::about(id, error),
        }
    }

    /// Changes the schedule, and reports what was done.
    async fn change(
        &self,
        common: &Common,
        change: ScheduleChange,
        key: Option<String>,
        done: &str,
    ) -> Result<(), Failed> {
        let client = common.client().await?;
        let change = ChangeSchedule {
            workflow: self.workflow(&client),
            change,
            revision: None,
            identity: client.identity().to_owned(),
            key: Some(key_or_new(key)),
        };
        client.ask(change).await.map_err(|error| self.failed(error))?;
        self.done(common, done)
    }

    fn done(&self, common: &Common, done: &str) -> Result<(), Failed> {
        let id = &self.id;
        let object = json!({ "done": done, "schedule": id });
        common.output().say(&object, format_args!("{done} schedule {id}"))
    }
}

/// Lost answers are asked for again, so each request has a key.
fn key_or_new(key: Option<String>) -> Key {
    key.unwrap_or_else(|| Uuid::new_v4().to_string()).into()
}
