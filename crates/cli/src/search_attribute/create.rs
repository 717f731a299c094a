//! `abide search-attribute create`.

use abide_command::{Common, Failed};
use abide_core::operation::CreateSearchAttribute;
use abide_core::search::AttributeKind;
use clap::Args;
use serde_json::json;

/// Register a search attribute, which runs may then have and queries may use
///
/// To repeat it changes nothing. Another type needs another name, or the removal of the first.
#[derive(Args)]
#[command(after_help = "Example:
  abide search-attribute create Amount --type int
  abide search-attribute create Labels --type keyword-list")]
pub(crate) struct Create {
    /// Name in queries: a letter, then letters, digits and _
    #[arg(value_name = "NAME")]
    name: String,
    /// One of keyword, keyword-list, text, int, double, bool, time
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    kind: AttributeKind,
}

impl Create {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let Self { name, kind } = self;
        let client = common.client().await?;
        let namespace = client.namespace().clone();
        client.ask(CreateSearchAttribute { namespace, name: name.clone(), kind }).await?;
        let done = json!({ "name": name, "type": kind.name() });
        common.output().say(&done, format_args!("{name} is registered as {kind}"))
    }
}
