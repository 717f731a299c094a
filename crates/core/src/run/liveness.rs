//! What an open run is doing, and what will resume it. Every open run has one liveness state and at
//! least one resume source; a run without one is stranded.

use super::{Phase, Run, Task};
use crate::event::Origin;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Liveness {
    Closed,
    Paused,
    /// Its code does not fit its history.
    ReplayBlocked,
    /// A workflow task is in flight on a worker.
    TaskRunning,
    /// A workflow task waits for a worker.
    TaskWaiting,
    /// The first task is not due yet.
    StartDelayed,
    ActivityPending,
    /// Waits for children or other workflows.
    ChildPending,
    /// Waits for a timer.
    TimerPending,
    /// Waits for a signal, an update or a condition.
    InputPending,
}

/// What will resume a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResumeSource {
    Task,
    Due,
    /// The end of an activity.
    Activity,
    /// An answer or a close from another workflow.
    Child,
    /// A signal, an update, or a cancel request.
    Input,
    /// An operator: the run is paused or blocked.
    Operator,
}

impl Run {
    pub fn liveness(&self) -> Liveness {
        if !self.open() {
            return Liveness::Closed;
        }
        if self.paused {
            return Liveness::Paused;
        }
        if self.replay_blocked() {
            return Liveness::ReplayBlocked;
        }
        if self.volatile.turn.is_some() {
            return Liveness::TaskRunning;
        }
        if self.task == Task::Idle && self.first_task_at.is_some() {
            return Liveness::StartDelayed;
        }
        if self.task != Task::Idle || !self.volatile.admitted.is_empty() {
            return Liveness::TaskWaiting;
        }
        if !self.activities.is_empty() {
            return Liveness::ActivityPending;
        }
        if let Some(schedule) = &self.schedule {
            let timed = !schedule.wake_at.is_never();
            return if timed { Liveness::TimerPending } else { Liveness::InputPending };
        }
        if !self.children.is_empty() || !self.externals.is_empty() {
            return Liveness::ChildPending;
        }
        if self.timers.values().any(|timer| !timer.spec.fire_at.is_never()) {
            return Liveness::TimerPending;
        }
        Liveness::InputPending
    }

    /// What will resume the run, in order.
    pub fn resume_sources(&self) -> Vec<ResumeSource> {
        let running = |phase: &Phase| matches!(phase, Phase::Ready { .. } | Phase::Started { .. });
        let waits_for_input = !self.waits.is_empty()
            || self.timers.values().any(|timer| {
                let for_signal = matches!(timer.spec.origin, Some(Origin::ExternalEvent { .. }));
                for_signal || timer.spec.fire_at.is_never()
            });
        let idle = self.timers.is_empty()
            && self.activities.is_empty()
            && self.children.is_empty()
            && self.externals.is_empty();
        let scheduled = self.schedule.is_some();
        let sources = [
            (self.task != Task::Idle || self.volatile.turn.is_some(), ResumeSource::Task),
            (!self.due_keys().is_empty(), ResumeSource::Due),
            (self.activities.values().any(|a| running(&a.phase)), ResumeSource::Activity),
            (!self.children.is_empty() || !self.externals.is_empty(), ResumeSource::Child),
            (scheduled || waits_for_input || (idle && self.completed > 0), ResumeSource::Input),
            (self.paused_with_buffer() || self.replay_blocked(), ResumeSource::Operator),
        ];
        let open = self.open();
        sources.into_iter().filter(|(holds, _)| open && *holds).map(|(_, source)| source).collect()
    }
}
