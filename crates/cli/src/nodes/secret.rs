//! `abide nodes secret`.

use abide_server::Secret;
use clap::Args;
use serde_json::json;

use crate::{connection::Common, failed::Failed};

/// Make a secret for the servers of a cluster
///
/// Servers on one database prove to each other that they know it, so that nobody else can speak as one of
/// them. Keep it in a file that only they can read, and give all of them the same.
#[derive(Args)]
#[command(after_help = "Example:
  (umask 077; abide nodes secret > node.secret)
  abide serve --store postgres://abide:password@db/abide --node one --secret-file node.secret")]
pub(crate) struct MakeSecret {}

impl MakeSecret {
    pub(super) fn run(self, common: &Common) -> Result<(), Failed> {
        let Secret(secret) = Secret::draw();
        common.output().say(&json!({ "secret": secret }), &secret)
    }
}
