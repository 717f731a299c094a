//! Timers.

use super::table::{messages, union};
use crate::event::{
    Approval, Guards, Mover, Origin, TimerCancelled, TimerFired, TimerRescheduled, TimerSpec,
    TimerStarted, WaitDetails,
};

messages! {
    TimerStarted { spec, task_completed }
    TimerSpec { timer, fire_at, origin, details, guards }
    WaitDetails { subject, actors, data, approval }
    Approval { request, update, choices }
    Guards { not_after, max_extensions }
    TimerRescheduled { timer, fire_at, by }
    TimerFired { timer, started, fire_at }
    TimerCancelled { timer, started }
}

union! {
    Origin = origin::Case in Origin {
        whole {}
        parts {
            CreateTimer(Nothing) {},
            ExternalEvent(ExternalEventOrigin) { name },
            Condition(ConditionOrigin) { key, fingerprint },
            ActivityRetry(ActivityRetryOrigin) { execution },
            ChildWorkflowRetry(ChildWorkflowRetryOrigin) { workflow },
        }
    }
}

union! {
    Mover = mover::Case in Mover {
        whole {}
        parts {
            Code(Nothing) {},
            Outside(OutsideMover) { identity, key, received_at },
        }
    }
}
