//! `abide search-attribute delete`.

use abide_command::{Common, Failed};
use clap::Args;
use serde_json::json;

/// Remove a search attribute from the namespace
///
/// Runs keep the values that they have, but no query finds them, and no run can set it. Servers may
/// accept it for ten seconds more.
#[derive(Args)]
#[command(after_help = "Example:
  abide search-attribute delete Amount")]
pub(crate) struct Delete {
    /// Name of the attribute
    #[arg(value_name = "NAME")]
    name: String,
}

impl Delete {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let Self { name } = self;
        let client = common.client().await?;
        if !client.search_attributes().await?.contains_key(&name) {
            return Err(Failed::refused(format_args!("there is no search attribute {name}"))
                .hint("`abide search-attribute list` shows all of them"));
        }
        client.delete_search_attribute(name.as_str()).await?;
        common.output().say(&json!({ "name": name }), format_args!("{name} is removed"))
    }
}
