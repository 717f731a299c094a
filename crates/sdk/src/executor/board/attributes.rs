//! Memo and search attributes of the run, as code has changed them so far.

use abide_core::{
    command::Ask,
    event::RunSpec,
    payload::{PayloadMap, merge},
};

use super::Board;

/// What code has made of them, from the first change on.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    memo: Option<PayloadMap>,
    search: Option<PayloadMap>,
}

impl Board {
    pub(crate) fn upsert_search_attributes(&self, changes: PayloadMap) {
        if changes.is_empty() {
            return;
        }
        let mut shared = self.change();
        let before = || self.started.spec.search_attributes.clone();
        merge(shared.attributes.search.get_or_insert_with(before), &changes);
        self.ask(&mut shared, Ask::UpsertSearchAttributes(changes));
    }

    pub(crate) fn upsert_memo(&self, changes: PayloadMap) {
        let mut shared = self.change();
        let before = || self.started.spec.memo.clone();
        merge(shared.attributes.memo.get_or_insert_with(before), &changes);
        self.ask(&mut shared, Ask::UpsertMemo(changes));
    }

    /// What the run was started with, with memo and search attributes as they are now.
    pub(crate) fn current_spec(&self) -> RunSpec {
        let mut spec = self.started.spec.clone();
        let shared = self.shared.borrow();
        if let Some(memo) = &shared.attributes.memo {
            spec.memo.clone_from(memo);
        }
        if let Some(attributes) = &shared.attributes.search {
            spec.search_attributes.clone_from(attributes);
        }
        spec
    }

    /// Reads the search attributes as they are now.
    pub(crate) fn search_attributes<T>(&self, read: impl FnOnce(&PayloadMap) -> T) -> T {
        let shared = self.shared.borrow();
        read(shared.attributes.search.as_ref().unwrap_or(&self.started.spec.search_attributes))
    }
}
