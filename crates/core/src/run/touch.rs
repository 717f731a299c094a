//! Which parts of a run a decision changed. The shard projects only those to rows.

use super::{Run, WaitKey};
use crate::ids::{EventNumber, TimerId, WaitId};

/// A part of a run that has rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touch {
    /// The run as lists show it.
    Run,
    /// The run's own deadlines: first task, run timeout.
    Deadlines,
    Task,
    Timer(TimerId),
    Wait(WaitId),
    Activity(EventNumber),
    /// An effect on another workflow.
    Effect(u64),
    /// When the schedule that the run is acts next.
    Schedule,
}

impl Run {
    pub(super) fn touch(&mut self, part: Touch) {
        let waits = match part {
            Touch::Timer(_) | Touch::Wait(_) | Touch::Activity(_) | Touch::Schedule => true,
            Touch::Deadlines => self.shown_wait(&WaitKey::Begin).is_some(),
            Touch::Run | Touch::Task | Touch::Effect(_) => false,
        };
        if waits {
            // The row is counted when it is complete.
            self.waits_row = self.log_rows + 1;
        }
        self.volatile.touched.insert(part);
    }

    /// Parts that changed since the last call, in order.
    pub fn take_touched(&mut self) -> Vec<Touch> {
        std::mem::take(&mut self.volatile.touched).into_iter().collect()
    }

    /// Every part that has rows.
    pub fn parts(&self) -> Vec<Touch> {
        let mut parts = vec![Touch::Run, Touch::Deadlines, Touch::Task];
        parts.extend(self.timers.keys().cloned().map(Touch::Timer));
        parts.extend(self.waits.keys().cloned().map(Touch::Wait));
        parts.extend(self.activities.keys().copied().map(Touch::Activity));
        parts.extend(self.outbox.keys().copied().map(Touch::Effect));
        parts.extend(self.schedule.as_ref().map(|_| Touch::Schedule));
        parts
    }

    /// Marks all parts as changed, so that all rows are written again.
    pub(super) fn touch_everything(&mut self) {
        self.volatile.touched.extend(self.parts());
    }
}
