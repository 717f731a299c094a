//! The builds that a queue has seen, so that each is announced to the shards once.

use std::collections::BTreeMap;

use abide_core::ids::BuildId;

/// Number of builds that a queue remembers: many deploys, and far more than are ever connected at
/// once. The least recently seen is evicted first, and is announced again if it returns.
pub(super) const BUILDS_MAX: usize = 100;

/// Builds with the turn at which they were last seen.
#[derive(Debug, Default)]
pub(super) struct Builds {
    seen: BTreeMap<BuildId, u64>,
    turn: u64,
}

impl Builds {
    /// Records a build; returns `true` if it was not known.
    pub(super) fn record(&mut self, build: &BuildId) -> bool {
        self.turn += 1;
        if self.seen.insert(build.clone(), self.turn).is_some() {
            return false;
        }
        if self.seen.len() > BUILDS_MAX {
            self.forget_oldest();
        }
        true
    }

    fn forget_oldest(&mut self) {
        let oldest = self.seen.iter().min_by_key(|(_, turn)| **turn);
        if let Some(build) = oldest.map(|(build, _)| build.clone()) {
            self.seen.remove(&build);
        }
    }
}
