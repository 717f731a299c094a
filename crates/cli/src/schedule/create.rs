//! `abide schedule create`.

use abide_command::{Common, Failed};
use abide_core::{
    event::RunSpec,
    operation::CreateSchedule,
    schedule::{Schedule, Spec},
};
use clap::Args;

use super::{Target, key_or_new, options::Options};

/// Create a schedule, which starts a workflow at each of its times
///
/// Rules are cron expressions, calendars and intervals; a schedule may have several. Without any rule it
/// starts only what is triggered.
#[derive(Args)]
#[command(after_help = "Example:
  abide schedule create report --type report --cron '0 9 * * MON-FRI' --time-zone Europe/Berlin
  abide schedule create sync --type sync --every 15m --overlap buffer-one --input '\"eu\"'
  abide schedule create close --type close-books --calendar 'day=L hour=18' --except 'month=12'")]
pub(crate) struct Create {
    #[command(flatten)]
    target: Target,
    /// Workflow type, as registered by a worker
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    workflow_type: String,
    #[command(flatten)]
    options: Options,
    /// Create it paused
    #[arg(long)]
    paused: bool,
    /// Why it is paused, or another remark
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Start a run at once, whatever the times
    #[arg(long)]
    trigger: bool,
    /// Idempotency key: a retry with the same key has no further effect
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl Create {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let Self { target, workflow_type, options, paused, note, trigger, key } = self;
        let mut schedule = Schedule {
            spec: Spec::default(),
            workflow: target.id.as_str().into(),
            run: RunSpec { workflow_type, queue: "default".into(), ..RunSpec::default() },
            overlap: None,
            catch_up: None,
            pause_on_failure: false,
            remaining: None,
        };
        options.apply(&mut schedule)?;
        let client = common.client().await?;
        let workflow = target.workflow(&client);
        let (identity, key) = (client.identity().to_owned(), Some(key_or_new(key)));
        let create = CreateSchedule { workflow, schedule, paused, note, trigger, identity, key };
        client.ask(create).await.map_err(|error| target.failed(error))?;
        target.done(common, "created")
    }
}
