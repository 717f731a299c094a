//! Workflow ids that fall on few shards, so that each shard has much to do. Children that are
//! retried get ids whose derived ids for later attempts fall on the same shards.

use std::sync::OnceLock;

use abide_core::ids::{ShardId, WorkflowKey};

/// The only namespace of a world.
pub const NAMESPACE: &str = "sim";

pub const SHARDS: u8 = 5;

/// Number of attempts for which the derived ids of a retried child are checked.
pub const CHILD_ATTEMPTS: u32 = 3;

const ROOTS: usize = 10;
const CHILDREN: usize = 12;
const RETRIED: usize = 6;

#[derive(Debug)]
pub struct Names {
    /// Workflows that clients start.
    pub roots: Vec<String>,
    /// Children that are not retried.
    pub children: Vec<String>,
    /// Children that are retried.
    pub retried: Vec<String>,
}

impl Names {
    /// The ids, computed once for all worlds because they take long to find.
    pub fn get() -> &'static Self {
        static NAMES: OnceLock<Names> = OnceLock::new();
        NAMES.get_or_init(Self::find)
    }

    fn find() -> Self {
        let ids = |prefix: &'static str| (0_u32..).map(move |number| format!("{prefix}{number}"));
        let all_attempts_fit = |id: &String| {
            fits(id) && (2..=CHILD_ATTEMPTS).all(|attempt| fits(&format!("{id}-attempt-{attempt}")))
        };
        Self {
            roots: ids("root").filter(|id| fits(id)).take(ROOTS).collect(),
            children: ids("child").filter(|id| fits(id)).take(CHILDREN).collect(),
            retried: ids("retried").filter(all_attempts_fit).take(RETRIED).collect(),
        }
    }
}

fn fits(id: &str) -> bool {
    shards().any(|shard| shard == key(id).slot().shard())
}

/// A workflow of the world.
pub fn key(id: &str) -> WorkflowKey {
    WorkflowKey { namespace: NAMESPACE.into(), workflow: id.into() }
}

/// The shards of a world.
pub fn shards() -> impl Iterator<Item = ShardId> {
    (0..SHARDS).filter_map(|number| ShardId::new(number * 11 + 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shard_has_a_workflow() {
        assert_eq!(shards().count(), usize::from(SHARDS));
        let used: std::collections::BTreeSet<_> =
            Names::get().roots.iter().map(|id| key(id).slot().shard()).collect();
        assert!(used.len() >= 4, "{used:?}");
    }
}
