//! Local activities: requested by code, run by the driver of the machine, delivered to code as
//! markers.

use std::{collections::BTreeSet, rc::Rc};

use abide_core::{command::Ask, event::Marker, time::Timestamp};

use super::{Board, BoardState};
use crate::{
    activity::{LocalActivity, LocalEnd},
    executor::waits::{Ender, Resolution, Subject, Wait},
    interceptor::OutgoingKind,
};

/// The local activities of a run that have not ended.
#[derive(Debug, Default)]
pub(super) struct Locals {
    /// Not passed to the driver yet, in order of request, with the time of the request.
    asked: Vec<(Timestamp, LocalActivity)>,
    /// Ids of those that the driver runs.
    handed_out: BTreeSet<String>,
    /// Ids of those that the driver runs and code no longer wants.
    given_up: Vec<String>,
}

/// What the driver of a machine has to do about local activities.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocalWork {
    /// Activities to start, in order of request. On replay, only those whose end is not in history.
    pub begin: Vec<LocalActivity>,
    /// Ids of activities to stop. Their ends would be ignored.
    pub give_up: Vec<String>,
}

impl Locals {
    /// Closes an activity; `false` if it was not open.
    fn close(&mut self, id: &str) -> bool {
        let asked = self.asked.len();
        self.asked.retain(|(_, activity)| activity.id != id);
        self.asked.len() < asked || self.handed_out.remove(id)
    }

    pub(super) fn give_up(&mut self, id: String) {
        let handed_out = self.handed_out.contains(&id);
        if self.close(&id) && handed_out {
            self.given_up.push(id);
        }
    }
}

impl Board {
    pub(crate) fn next_local(&self) -> u64 {
        let mut shared = self.change();
        shared.counts.locals += 1;
        shared.counts.locals
    }

    /// Requests a local activity.
    pub(crate) fn run_locally(self: &Rc<Self>, mut activity: LocalActivity) -> Wait {
        let LocalActivity { activity_type, header, .. } = &mut activity;
        self.outgoing(OutgoingKind::LocalActivity, (activity_type, None), header);
        let mut shared = self.change();
        let subject = Subject::Local(activity.id.clone());
        if !self.silent() {
            shared.locals.asked.push((self.now(), activity));
        }
        self.open(&mut shared, subject, Ender::Nothing)
    }

    /// The new work for the driver; each item is returned once.
    pub(in crate::executor) fn take_local_work(&self) -> LocalWork {
        let mut shared = self.shared.borrow_mut();
        let BoardState { locals, .. } = &mut *shared;
        let now = self.now();
        let mut work =
            LocalWork { begin: Vec::new(), give_up: std::mem::take(&mut locals.given_up) };
        for (since, mut activity) in std::mem::take(&mut locals.asked) {
            // It may have run before, in a worker that is gone.
            let passed = now.saturating_since(since);
            let left = activity.schedule_to_close.map(|limit| limit.saturating_sub(passed));
            activity.schedule_to_close = left;
            locals.handed_out.insert(activity.id.clone());
            work.begin.push(activity);
        }
        work
    }

    /// A local activity ended: if code still waits for it, the end is recorded and code continues.
    pub(in crate::executor) fn local_resolved(&self, marker: &Marker) {
        let mut shared = self.shared.borrow_mut();
        if !shared.locals.close(&marker.id) {
            return;
        }
        self.ask(&mut shared, Ask::RecordMarker(marker.clone()));
        drop(shared);
        let end = || Resolution::Local(Box::new(LocalEnd::of_marker(marker)));
        self.resolve(&Subject::Local(marker.id.clone()), end);
    }
}
