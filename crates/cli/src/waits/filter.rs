//! Which waits are listed.

use std::time::Duration;

use abide::Timestamp;
use abide_command::{
    Failed,
    time::{ago, moment, parse_length, parse_moment},
};
use abide_core::list::WaitFilter;
use clap::Args;

/// Selects waits that match all given options.
#[derive(Args)]
pub(crate) struct Filter {
    /// Only waits of workflows of this type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    workflow_type: Option<String>,
    /// Only waits of the workflow with this id
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// Only waits that end within this time
    #[arg(long, value_name = "TIME", value_parser = parse_length, allow_hyphen_values = true)]
    within: Option<Duration>,
    /// Only waits that end at or before this time
    #[arg(long, value_name = "MOMENT", value_parser = parse_moment, conflicts_with = "within")]
    due_before: Option<Timestamp>,
    /// Only waits that have lasted longer than this
    #[arg(long, value_name = "TIME", value_parser = parse_length, allow_hyphen_values = true)]
    older_than: Option<Duration>,
}

/// The length of a list.
#[derive(Args)]
pub(crate) struct Paged {
    /// Maximum number of entries
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    pub(crate) limit: usize,
}

impl Filter {
    /// The filter for the engine.
    pub(crate) fn of_engine(self) -> Result<WaitFilter, Failed> {
        Ok(WaitFilter {
            workflow: self.workflow.map(Into::into),
            workflow_type: self.workflow_type,
            until: self.within.map(moment).transpose()?.or(self.due_before),
            since_before: self.older_than.map(ago),
            ..WaitFilter::default()
        })
    }
}
