//! `abide nodes secret`.

use abide_command::{Common, Failed};
use abide_server::Secret;
use clap::Args;
use serde_json::json;

/// Generate a secret for the nodes of a cluster
///
/// Nodes that share a database authenticate each other with this secret. Give all nodes the same secret,
/// in a file that only they can read.
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
