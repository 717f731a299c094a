//! `abide search-attribute list`.

use abide_command::{Common, Failed, Table};
use clap::Args;
use serde_json::json;

/// List the search attributes of the namespace and their types
#[derive(Args)]
#[command(after_help = "Example:
  abide search-attribute list
  abide search-attribute list --json")]
pub(crate) struct List {}

impl List {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let attributes = common.client().await?.search_attributes().await?;
        let output = common.output();
        if output.json() {
            return attributes.iter().try_for_each(|(name, kind)| {
                output.object(&json!({ "name": name, "type": kind.to_string() }))
            });
        }
        if attributes.is_empty() {
            let none = "no search attributes; register one with `abide search-attribute create`";
            return output.line(none);
        }
        let mut table = Table::new(["name", "type"]);
        for (name, kind) in attributes {
            table.row([name, kind.to_string()]);
        }
        output.lines(table)
    }
}
