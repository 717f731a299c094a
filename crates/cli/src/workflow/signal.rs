//! `abide workflow signal`.

use abide_command::{Common, Failed};
use clap::Args;

use super::{Target, done};
use crate::input::Input;

/// Send a signal to a workflow
#[derive(Args)]
#[command(after_help = "Example:
  abide workflow signal order-7 pay --input 250")]
pub(crate) struct Signal {
    #[command(flatten)]
    target: Target,
    /// Signal name
    name: String,
    #[command(flatten)]
    input: Input,
    /// Idempotency key: a retry with the same key has no further effect
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl Signal {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let input = self.input.payloads()?;
        let client = common.client().await?;
        let mut signal = self.target.handle(&client).signal_untyped(self.name, input);
        if let Some(key) = self.key {
            signal = signal.key(key);
        }
        signal.await.map_err(|error| self.target.failed(error))?;
        done(common.output(), "signalled", &self.target.id)
    }
}
