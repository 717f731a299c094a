//! Which namespaces accept commands from runs of other namespaces: child starts, signals, cancel
//! requests and terminations. A namespace accepts only what its configuration allows.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    effect::{Action, Effect},
    ids::NamespaceId,
};

/// Allowed commands between namespaces; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Borders {
    accepted: BTreeMap<NamespaceId, BTreeSet<NamespaceId>>,
}

impl Borders {
    /// Allows commands from runs in `from` to workflows in `into`.
    pub fn accept(&mut self, into: NamespaceId, from: NamespaceId) {
        self.accepted.entry(into).or_default().insert(from);
    }

    /// Whether an effect of a run in `from` may reach its target. Commands to the run's own child
    /// and a child's close notice to its parent are always allowed, because the child's start was.
    /// The target verifies that it is the child.
    pub fn admit(&self, from: &NamespaceId, effect: &Effect) -> bool {
        let into = &effect.target.workflow.namespace;
        let kin = match effect.action {
            Action::ChildClosed(_) | Action::AdoptChild(_) => true,
            Action::Signal { .. } | Action::Cancel { .. } => effect.target.child.is_some(),
            Action::StartChild(_) => false,
        };
        kin || from == into
            || self.accepted.get(into).is_some_and(|accepted| accepted.contains(from))
    }
}
