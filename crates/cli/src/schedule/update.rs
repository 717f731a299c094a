//! `abide schedule update`.

use abide_command::{Common, Failed};
use abide_core::{
    operation::ChangeSchedule,
    schedule::{Schedule, ScheduleChange},
};
use clap::{Args, ValueEnum};

use super::{Target, key_or_new, options::Options};

/// Change a schedule: its times, its policy, or what it starts
///
/// What is not given stays as it is. New rules (--cron, --calendar, --every) replace all rules, new
/// exclusions all exclusions. An update is refused if another one comes at the same moment.
#[derive(Args)]
#[command(after_help = "Example:
  abide schedule update report --cron '0 8 * * MON-FRI'
  abide schedule update report --overlap buffer-all --clear exclusions")]
pub(crate) struct Update {
    #[command(flatten)]
    target: Target,
    /// Workflow type, as registered by a worker
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    workflow_type: Option<String>,
    #[command(flatten)]
    options: Options,
    /// Remove something that the schedule has; repeat for several
    #[arg(long, value_enum, value_name = "WHAT")]
    clear: Vec<Clear>,
    /// Idempotency key: a retry with the same key has no further effect
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Clear {
    /// All cron expressions, calendars and intervals
    Rules,
    Exclusions,
    StartAt,
    EndAt,
    Jitter,
    /// The number of starts that are left: any number
    Remaining,
    /// The arguments of the workflow
    Input,
}

impl Update {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let Self { target, workflow_type, options, clear, key } = self;
        let client = common.client().await?;
        let described = target.describe(&client).await?;
        let mut schedule = described.state.schedule;
        clear.into_iter().for_each(|clear| clear.apply(&mut schedule));
        if let Some(workflow_type) = workflow_type {
            schedule.run.workflow_type = workflow_type;
        }
        options.apply(&mut schedule)?;
        let update = ChangeSchedule {
            workflow: target.workflow(&client),
            change: ScheduleChange::Updated(Box::new(schedule)),
            revision: Some(described.state.revision),
            identity: client.identity().to_owned(),
            key: Some(key_or_new(key)),
        };
        client.ask(update).await.map_err(|error| target.failed(error))?;
        target.done(common, "updated")
    }
}

impl Clear {
    fn apply(self, schedule: &mut Schedule) {
        let spec = &mut schedule.spec;
        match self {
            Self::Rules => {
                spec.cron.clear();
                spec.calendars.clear();
                spec.intervals.clear();
            }
            Self::Exclusions => spec.exclusions.clear(),
            Self::StartAt => spec.start_at = None,
            Self::EndAt => spec.end_at = None,
            Self::Jitter => spec.jitter = None,
            Self::Remaining => schedule.remaining = None,
            Self::Input => schedule.run.input.clear(),
        }
    }
}
