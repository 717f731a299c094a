//! Markers that code records: values that are not deterministic, and which version of a changed
//! part the run follows.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    command::Ask,
    event::{Marker, MarkerKind},
    payload::{PayloadMap, Payloads},
};

use super::Board;

/// The key of a marker's value.
const VALUE: &str = "value";

#[derive(Debug, Default)]
pub(super) struct Markers {
    /// Markers that history has for the current turn.
    pub(super) recorded: Vec<Marker>,
    /// Whether the run follows each change that code has asked about.
    followed: BTreeMap<&'static str, bool>,
    /// Changes that the run does not follow although code has no other branch.
    abandoned: BTreeSet<&'static str>,
}

impl Markers {
    pub(super) fn take(&mut self, kind: &MarkerKind, id: &str) -> Option<Marker> {
        let wanted = |marker: &Marker| marker.kind == *kind && marker.id == id;
        let index = self.recorded.iter().position(wanted)?;
        Some(self.recorded.remove(index))
    }
}

impl Board {
    /// The recorded value on replay, else a new one, which is recorded.
    pub(crate) fn side_effect<E>(
        &self,
        make: impl FnOnce() -> Result<Payloads, E>,
    ) -> Result<Payloads, E> {
        let mut shared = self.change();
        shared.counts.side_effects += 1;
        let id = format!("side-effect-{}", shared.counts.side_effects);
        let recorded = shared.markers.take(&MarkerKind::SideEffect, &id);
        // User code computes the value, and may call the board.
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
    /// outside of replay, and from then on.
    pub(crate) fn follows(&self, change: &'static str) -> bool {
        self.asked_for(change, BTreeMap::new())
    }

    /// Code follows a change and has no other branch left. The recorded marker is not required on
    /// replay.
    pub(crate) fn follows_alone(&self, change: &'static str) {
        let deprecated = [(Marker::DEPRECATED.to_owned(), Payloads::new())].into();
        if !self.asked_for(change, deprecated) {
            self.change().markers.abandoned.insert(change);
        }
    }

    /// The advice for a mismatch: the run may have started before a change whose old branch was
    /// removed.
    pub(in crate::executor) fn advice(&self) -> Option<String> {
        let shared = self.shared.borrow();
        let change = shared.markers.abandoned.first()?;
        Some(format!(
            "the run passed this place before the patch \"{change}\", whose old code is gone: bring \
             it back as `if ctx.patched(\"{change}\") {{ new }} else {{ old }}` until the run has closed"
        ))
    }

    fn asked_for(&self, change: &'static str, details: BTreeMap<String, Payloads>) -> bool {
        let mut shared = self.change();
        if let Some(known) = shared.markers.followed.get(change) {
            return *known;
        }
        let recorded = shared.markers.take(&MarkerKind::Version, change);
        let follows = recorded.is_some() || !self.replaying();
        shared.markers.followed.insert(change, follows);
        if follows {
            let new = || marker(MarkerKind::Version, change.to_owned(), details);
            self.ask(&mut shared, Ask::RecordMarker(recorded.unwrap_or_else(new)));
        }
        follows
    }
}

pub(super) fn marker(kind: MarkerKind, id: String, details: BTreeMap<String, Payloads>) -> Marker {
    Marker { kind, id, details, failure: None, header: PayloadMap::new() }
}
