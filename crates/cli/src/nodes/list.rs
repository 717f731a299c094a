//! `abide nodes list`.

use abide::client::NodeInfo;
use abide_command::{Common, Failed, Table};
use clap::Args;
use serde::Serialize;

use crate::output::snake_case;

/// List the nodes of the cluster and the shards they own
///
/// States: alive; leaving (handing over its shards); gone (shut down, or its shards have other owners);
/// silent (missed lease renewals); unreadable (written by a newer version).
#[derive(Args)]
#[command(after_help = "Example:
  abide nodes list
  abide nodes list --address one:7233,two:7233 --json")]
pub(crate) struct List {}

/// A node, as programs read it.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    address: &'a str,
    state: String,
    shards: usize,
}

impl List {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let nodes = common.client().await?.nodes().await?;
        let output = common.output();
        let mut shown = nodes.iter().map(Shown::of);
        if output.json() {
            return shown.try_for_each(|node| output.object(&node));
        }
        let mut table = Table::new(["name", "address", "state", "shards"]);
        for Shown { name, address, state, shards } in shown {
            table.row([name.into(), address.into(), state, shards.to_string()]);
        }
        output.lines(table)
    }
}

impl<'a> Shown<'a> {
    fn of(node: &'a NodeInfo) -> Self {
        let NodeInfo { name, address, status, shards, .. } = node;
        Self { name, address, state: snake_case(&format!("{status:?}")), shards: *shards }
    }
}
