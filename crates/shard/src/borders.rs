//! Which namespaces take commands of runs of other namespaces: starts of children, signals, cancel
//! requests and terminations. A namespace takes none that it was not configured to take.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    effect::{Action, Effect},
    ids::NamespaceId,
};

/// What may cross from one namespace into another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Borders {
    accepted: BTreeMap<NamespaceId, BTreeSet<NamespaceId>>,
}

impl Borders {
    /// Lets commands of runs in `from` through to workflows in `into`.
    pub fn accept(&mut self, into: NamespaceId, from: NamespaceId) {
        self.accepted.entry(into).or_default().insert(from);
    }

    /// Whether an effect of a run in `from` may reach its target. What a run does to its own child, and a
    /// child's news for its parent, may: the child was let in. Whether it is one is the target's to say.
    pub fn admit(&self, from: &NamespaceId, effect: &Effect) -> bool {
        let into = &effect.target.workflow.namespace;
        let kin = match effect.action {
            Action::ChildClosed(_) => true,
            Action::Signal { .. } | Action::Cancel { .. } => effect.target.child.is_some(),
            Action::StartChild(_) => false,
        };
        kin || from == into
            || self.accepted.get(into).is_some_and(|accepted| accepted.contains(from))
    }
}
