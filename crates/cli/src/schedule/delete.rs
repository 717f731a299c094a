//! `abide schedule delete`.

use abide_command::{Common, Failed};
use abide_core::operation::DeleteSchedule;
use clap::Args;

use super::{Target, key_or_new};

/// Delete a schedule; the runs that it started go on
#[derive(Args)]
#[command(after_help = "Example:
  abide schedule delete report")]
pub(crate) struct Delete {
    #[command(flatten)]
    target: Target,
    /// Idempotency key: a retry with the same key has no further effect
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl Delete {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let Self { target, key } = self;
        let client = common.client().await?;
        let workflow = target.workflow(&client);
        let (identity, key) = (client.identity().to_owned(), Some(key_or_new(key)));
        let deleted = client.ask(DeleteSchedule { workflow, identity, key }).await;
        deleted.map_err(|error| target.failed(error))?;
        target.done(common, "deleted")
    }
}
