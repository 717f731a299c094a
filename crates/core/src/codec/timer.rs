//! Timers.

use super::{
    error::DecodeError,
    generated,
    table::{message, messages, union},
    wire::Wire,
};
use crate::event::{
    Approval, Guards, Mover, Origin, TimerCancelled, TimerFired, TimerRescheduled, TimerSpec,
    TimerStarted, WaitDetails,
};

messages! {
    TimerStarted { spec, task_completed }
    TimerSpec { timer, fire_at, origin, details, guards }
    WaitDetails { subject, actors, data, approval }
    Approval { request, update, choices }
    TimerRescheduled { timer, fire_at, by }
    TimerFired { timer, started, fire_at }
    TimerCancelled { timer, started }
}

message!(Guards { not_after, max_extensions });

/// Our code always writes the guards; other SDKs that set none may omit them.
impl Wire<Option<generated::Guards>> for Guards {
    fn to_wire(&self) -> Option<generated::Guards> {
        Some(self.to_wire())
    }

    fn from_wire(wire: Option<generated::Guards>) -> Result<Self, DecodeError> {
        wire.map_or_else(|| Ok(Self::default()), Self::from_wire)
    }
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
            Outside(OutsideMover) { identity, key, received_at, asked },
        }
    }
}
