//! Local activities: asked for by code, run by whoever drives the machine, told to code as markers.

use std::{collections::BTreeSet, rc::Rc};

use abide_core::{command::Ask, event::Marker, time::Timestamp};

use super::{Board, Shared};
use crate::{
    activity::{LocalActivity, LocalEnd},
    executor::waits::{Ender, Resolution, Subject, Wait},
};

/// The local activities of a run that have not ended.
#[derive(Debug, Default)]
pub(super) struct Locals {
    /// Not handed out yet, in the order in which code asked, and when it asked.
    asked: Vec<(Timestamp, LocalActivity)>,
    /// Handed out, by id.
    handed_out: BTreeSet<String>,
    /// Handed out, and not wanted any more.
    given_up: Vec<String>,
}

/// What the driver of a machine has to do about local activities.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocalWork {
    /// To be run, in the order in which code asked. On replay, only what history has no end of.
    pub begin: Vec<LocalActivity>,
    /// By id: to be stopped. Their ends would be ignored.
    pub give_up: Vec<String>,
}

impl Locals {
    /// It is not open any more; `false` if it was not.
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
    /// The next number of a local activity.
    pub(crate) fn next_local(&self) -> u64 {
        let mut shared = self.change();
        shared.counts.locals += 1;
        shared.counts.locals
    }

    /// Asks for a local activity.
    pub(crate) fn run_locally(self: &Rc<Self>, activity: LocalActivity) -> Wait {
        let mut shared = self.change();
        let subject = Subject::Local(activity.id.clone());
        if !self.silent() {
            shared.locals.asked.push((self.now(), activity));
        }
        self.open(&mut shared, subject, Ender::Nothing)
    }

    /// What the driver has to do now; each thing is said once.
    pub(in crate::executor) fn take_local_work(&self) -> LocalWork {
        let mut shared = self.shared.borrow_mut();
        let Shared { locals, .. } = &mut *shared;
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

    /// A local activity ended: if code still waits for it, this is recorded and code goes on.
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
