//! Workflow ids that fall on few shards, so that each shard has much to do. Children that are
//! retried get ids whose derived ids for later attempts fall on the same shards.

use std::sync::OnceLock;

use abide_core::{
    ids::{ShardId, WorkflowKey},
    schedule::key_of,
};

/// The namespaces of a world: that of most workflows, and that of those whose ids begin with [`FAR`].
pub const NAMESPACES: [&str; 2] = ["sim", "far"];

const FAR: &str = "far-";

pub const SHARDS: u8 = 5;

/// Number of attempts for which the derived ids of a retried child are checked.
pub const CHILD_ATTEMPTS: u32 = 3;

const ROOTS: usize = 8;
const FAR_ROOTS: usize = 3;
const CHILDREN: usize = 10;
const FAR_CHILDREN: usize = 2;
const RETRIED: usize = 6;
const SCHEDULES: usize = 3;

#[derive(Debug)]
pub struct Names {
    /// Workflows that clients start.
    pub roots: Vec<String>,
    /// Children that are not retried.
    pub children: Vec<String>,
    /// Children that are retried.
    pub retried: Vec<String>,
    /// Schedules, in the first namespace.
    pub schedules: Vec<String>,
}

impl Names {
    /// The ids, computed once for all worlds because they take long to find.
    pub fn get() -> &'static Self {
        static NAMES: OnceLock<Names> = OnceLock::new();
        NAMES.get_or_init(Self::find)
    }

    fn find() -> Self {
        let ids = |prefix: &'static str| (0_u32..).map(move |number| format!("{prefix}{number}"));
        let fitting = |prefix| ids(prefix).filter(|id| fits(id));
        let all_attempts_fit = |id: &String| {
            fits(id) && (2..=CHILD_ATTEMPTS).all(|attempt| fits(&format!("{id}-attempt-{attempt}")))
        };
        Self {
            roots: fitting("root").take(ROOTS).chain(fitting("far-root").take(FAR_ROOTS)).collect(),
            children: fitting("child")
                .take(CHILDREN)
                .chain(fitting("far-child").take(FAR_CHILDREN))
                .collect(),
            retried: ids("retried").filter(all_attempts_fit).take(RETRIED).collect(),
            schedules: ids("schedule")
                .filter(|id| holds(&key_of(NAMESPACES[0].into(), id)))
                .take(SCHEDULES)
                .collect(),
        }
    }
}

/// Whether the workflow of this id is on a shard of the world.
pub fn fits(id: &str) -> bool {
    holds(&key(id))
}

fn holds(workflow: &WorkflowKey) -> bool {
    shards().any(|shard| shard == workflow.slot().shard())
}

/// A workflow of the world. Its id tells its namespace.
pub fn key(id: &str) -> WorkflowKey {
    let [near, far] = NAMESPACES;
    let namespace = if id.starts_with(FAR) { far } else { near };
    WorkflowKey { namespace: namespace.into(), workflow: id.into() }
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
