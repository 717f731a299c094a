//! Bugs in how nodes share the shards.

use std::collections::BTreeSet;

use abide_core::ids::ShardId;
use abide_shard::{
    lease::{NODE_PREFIX, NodeRow, NodeState},
    message::Message,
};
use abide_store::rows::RegistryRow;

use super::{Bug, Saboteur};

impl Saboteur {
    /// A node's row as it is written.
    pub fn row(&mut self, mut row: RegistryRow) -> RegistryRow {
        if self.strikes(Bug::UnlistedShards)
            && let Ok(listed) = NodeRow::decode(&row.value)
        {
            row.value = NodeRow { shards: BTreeSet::new(), ..listed }.encode();
        }
        row
    }

    /// The rows as a node reads them.
    pub fn rows(&mut self, reader: &str, mut rows: Vec<RegistryRow>) -> Vec<RegistryRow> {
        let own = format!("{NODE_PREFIX}{reader}");
        for row in rows.iter_mut().filter(|row| row.name != own) {
            if self.strikes(Bug::EarlyTakeover)
                && let Ok(other) = NodeRow::decode(&row.value)
            {
                let shards = BTreeSet::new();
                row.value = NodeRow { state: NodeState::Gone, shards, ..other }.encode();
            }
        }
        rows
    }

    /// Whether shards stay open although the lease asks to close them.
    pub fn ignores_close(&self) -> bool {
        self.bug == Some(Bug::ServingWithoutRow)
    }

    /// Whether the outputs of this message are sent regardless of the lease.
    pub fn trusts(&self, message: &Message) -> bool {
        match self.bug {
            Some(Bug::AnswerWithoutLease) => {
                matches!(message, Message::Ask(..) | Message::Report(..))
            }
            Some(Bug::WorkWithoutLease) => {
                matches!(message, Message::Matched(..) | Message::Committed(_))
            }
            Some(Bug::ServingWithoutRow) => true,
            _ => false,
        }
    }

    /// Whether the late end of a link that was replaced counts as that of the new one.
    pub fn counts_old_ends(&self) -> bool {
        self.bug == Some(Bug::OldLinkEnd)
    }

    /// Whether a shard closes without waiting for its commit.
    pub fn forgets_commit(&self) -> bool {
        self.bug == Some(Bug::ForgottenCommit)
    }

    /// Whether the machine of a shard that was handed over is kept, and still answers calls here.
    pub fn retires(&mut self, node: usize, shard: ShardId, machine: u32) -> bool {
        let retires = self.bug == Some(Bug::WrongOwner);
        if retires {
            self.retired.insert((node, shard), machine);
        }
        retires
    }

    /// The machine that answers for a shard that is not served.
    pub fn retired(&self, node: usize, shard: ShardId) -> Option<u32> {
        self.retired.get(&(node, shard)).copied()
    }
}
