//! What code records for itself: values that are not deterministic, and which version of a changed part
//! the run follows.

use std::collections::BTreeMap;

use abide_core::{
    command::Ask,
    event::{Marker, MarkerKind},
    payload::{PayloadMap, Payloads},
};

use super::Board;

/// The part of a marker that holds the value.
const VALUE: &str = "value";

/// The markers of a run.
#[derive(Debug, Default)]
pub(super) struct Markers {
    /// What history has for the current turn.
    recorded: Vec<Marker>,
    /// Which changes the run follows, once code has asked.
    followed: BTreeMap<&'static str, bool>,
}

impl Markers {
    fn take(&mut self, kind: &MarkerKind, id: &str) -> Option<Marker> {
        let wanted = |marker: &Marker| marker.kind == *kind && marker.id == id;
        let index = self.recorded.iter().position(wanted)?;
        Some(self.recorded.remove(index))
    }
}

impl Board {
    pub(super) fn set_markers(&self, recorded: Vec<Marker>) {
        self.shared.borrow_mut().markers.recorded = recorded;
    }

    /// The recorded value on replay, else a new one, which is recorded.
    pub(crate) fn side_effect<E>(
        &self,
        make: impl FnOnce() -> Result<Payloads, E>,
    ) -> Result<Payloads, E> {
        let mut shared = self.change();
        shared.counts.side_effects += 1;
        let id = format!("side-effect-{}", shared.counts.side_effects);
        let recorded = shared.markers.take(&MarkerKind::SideEffect, &id);
        // What makes the value is user code, which may come back here.
        drop(shared);
        let marker = match recorded {
            Some(marker) => marker,
            None => marker(MarkerKind::SideEffect, id, [(VALUE.to_owned(), make()?)].into()),
        };
        let value = marker.details.get(VALUE).cloned().unwrap_or_default();
        self.ask(&mut self.shared.borrow_mut(), Ask::RecordMarker(marker));
        Ok(value)
    }

    /// Whether the run follows a change of its code: it does from the first time that code asks
    /// without replaying, and then for ever.
    pub(crate) fn follows(&self, change: &'static str) -> bool {
        let mut shared = self.change();
        if let Some(known) = shared.markers.followed.get(change) {
            return *known;
        }
        let recorded = shared.markers.take(&MarkerKind::Version, change);
        let follows = recorded.is_some() || !self.replaying();
        shared.markers.followed.insert(change, follows);
        if follows {
            let new = || marker(MarkerKind::Version, change.to_owned(), BTreeMap::new());
            let marker = recorded.unwrap_or_else(new);
            self.ask(&mut shared, Ask::RecordMarker(marker));
        }
        follows
    }
}

fn marker(kind: MarkerKind, id: String, details: BTreeMap<String, Payloads>) -> Marker {
    Marker { kind, id, details, failure: None, header: PayloadMap::new() }
}
