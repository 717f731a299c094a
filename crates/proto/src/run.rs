//! References to runs, and runs as lists and descriptions show them.

use abide_core::{
    codec::Wire,
    limits::InvalidField,
    list::RunStatus,
    operation::RunTarget,
    run::{
        Close, Description, Liveness, ResumeSource, ShownActivity, ShownChild, ShownPhase,
        TaskTrouble,
    },
};

use crate::{
    field::{Inside, case, enumeration, missing, parts, word},
    generated::{self as wire, shown_activity},
};

enumeration!(
    RunStatus,
    RunStatus {
        Running,
        Paused,
        ReplayBlocked,
        Completed,
        Failed,
        TimedOut,
        Cancelled,
        Terminated,
        ContinuedAsNew,
    }
);

enumeration!(Close, Close { Completed, Failed, TimedOut, Cancelled, Terminated, ContinuedAsNew });

enumeration!(
    Liveness,
    Liveness {
        Closed,
        Paused,
        ReplayBlocked,
        TaskRunning,
        TaskWaiting,
        StartDelayed,
        ActivityPending,
        ChildPending,
        TimerPending,
        InputPending,
    }
);

enumeration!(ResumeSource, ResumeSource { Task, Due, Activity, Child, Input, Operator });

impl From<RunTarget> for wire::RunTarget {
    fn from(target: RunTarget) -> Self {
        Self { workflow: target.workflow.to_wire(), run: target.run.to_wire() }
    }
}

impl TryFrom<wire::RunTarget> for RunTarget {
    type Error = InvalidField;

    fn try_from(wire: wire::RunTarget) -> Result<Self, InvalidField> {
        let wire::RunTarget { workflow, run } = wire;
        Ok(Self { workflow: word("workflow", workflow)?, run: word("run", run)? })
    }
}

impl From<Description> for wire::RunDescription {
    fn from(shown: Description) -> Self {
        Self {
            workflow: shown.workflow.to_wire(),
            run: shown.run.to_wire(),
            workflow_type: shown.workflow_type,
            queue: shown.queue,
            status: wire::RunStatus::from(shown.status).into(),
            liveness: wire::Liveness::from(shown.liveness).into(),
            first_run: shown.first_run.to_wire(),
            reset_from: shown.reset_from.to_wire(),
            attempt: shown.attempt,
            parent: shown.parent.to_wire(),
            started_at: shown.started_at.to_wire(),
            begins_at: shown.begins_at.to_wire(),
            closed_at: shown.closed_at.to_wire(),
            deadline: shown.deadline.to_wire(),
            next_run: shown.next_run.to_wire(),
            outcome: shown.outcome.to_wire(),
            last_event: shown.last_event,
            history_bytes: shown.history_bytes,
            cancel_requested: shown.cancel_requested,
            memo: shown.memo.to_wire(),
            search_attributes: shown.search_attributes.to_wire(),
            trouble: shown.trouble.map(Into::into),
            waits: shown.waits.into_iter().map(Into::into).collect(),
            activities: shown.activities.into_iter().map(Into::into).collect(),
            children: shown.children.into_iter().map(Into::into).collect(),
            updates: shown.updates.to_wire(),
            resume_sources: shown.resume_sources.into_iter().map(source_number).collect(),
        }
    }
}

impl TryFrom<wire::RunDescription> for Description {
    type Error = InvalidField;

    fn try_from(wire: wire::RunDescription) -> Result<Self, InvalidField> {
        let trouble = wire.trouble.map(TaskTrouble::try_from).transpose();
        Ok(Self {
            workflow: word("workflow", wire.workflow)?,
            run: word("run", wire.run)?,
            workflow_type: wire.workflow_type,
            queue: wire.queue,
            status: case::<_, wire::RunStatus>("status", wire.status)?,
            liveness: case::<_, wire::Liveness>("liveness", wire.liveness)?,
            first_run: word("first_run", wire.first_run)?,
            reset_from: word("reset_from", wire.reset_from)?,
            attempt: wire.attempt,
            parent: word("parent", wire.parent)?,
            started_at: word("started_at", wire.started_at)?,
            begins_at: word("begins_at", wire.begins_at)?,
            closed_at: word("closed_at", wire.closed_at)?,
            deadline: word("deadline", wire.deadline)?,
            next_run: word("next_run", wire.next_run)?,
            outcome: word("outcome", wire.outcome)?,
            last_event: wire.last_event,
            history_bytes: wire.history_bytes,
            cancel_requested: wire.cancel_requested,
            memo: word("memo", wire.memo)?,
            search_attributes: word("search_attributes", wire.search_attributes)?,
            trouble: trouble.map_err(|error| error.inside("trouble"))?,
            waits: parts("waits", wire.waits)?,
            activities: parts("activities", wire.activities)?,
            children: parts("children", wire.children)?,
            updates: word("updates", wire.updates)?,
            resume_sources: wire
                .resume_sources
                .into_iter()
                .map(source)
                .collect::<Result<_, _>>()?,
        })
    }
}

fn source_number(source: ResumeSource) -> i32 {
    wire::ResumeSource::from(source).into()
}

fn source(number: i32) -> Result<ResumeSource, InvalidField> {
    case::<_, wire::ResumeSource>("resume_sources", number)
}

impl From<TaskTrouble> for wire::TaskTrouble {
    fn from(trouble: TaskTrouble) -> Self {
        Self {
            attempt: trouble.attempt,
            failed_at: trouble.failed_at.to_wire(),
            not_before: trouble.not_before.to_wire(),
            cause: trouble.cause.to_wire(),
            failure: trouble.failure.to_wire(),
            blocked: trouble.blocked.to_wire(),
        }
    }
}

impl TryFrom<wire::TaskTrouble> for TaskTrouble {
    type Error = InvalidField;

    fn try_from(wire: wire::TaskTrouble) -> Result<Self, InvalidField> {
        Ok(Self {
            attempt: wire.attempt,
            failed_at: word("failed_at", wire.failed_at)?,
            not_before: word("not_before", wire.not_before)?,
            cause: word("cause", wire.cause)?,
            failure: word("failure", wire.failure)?,
            blocked: word("blocked", wire.blocked)?,
        })
    }
}

impl From<ShownActivity> for wire::ShownActivity {
    fn from(activity: ShownActivity) -> Self {
        Self {
            activity: activity.activity.to_wire(),
            activity_type: activity.activity_type,
            queue: activity.queue,
            attempt: activity.attempt,
            last_failure: activity.last_failure.to_wire(),
            heartbeat: activity.heartbeat.to_wire(),
            cancel_requested: activity.cancel_requested,
            phase: Some(activity.phase.into()),
        }
    }
}

impl TryFrom<wire::ShownActivity> for ShownActivity {
    type Error = InvalidField;

    fn try_from(wire: wire::ShownActivity) -> Result<Self, InvalidField> {
        let phase = wire.phase.ok_or_else(|| missing("phase"))?;
        Ok(Self {
            activity: word("activity", wire.activity)?,
            activity_type: wire.activity_type,
            queue: wire.queue,
            attempt: wire.attempt,
            phase: phase.try_into()?,
            last_failure: word("last_failure", wire.last_failure)?,
            heartbeat: word("heartbeat", wire.heartbeat)?,
            cancel_requested: wire.cancel_requested,
        })
    }
}

impl From<ShownPhase> for shown_activity::Phase {
    fn from(phase: ShownPhase) -> Self {
        match phase {
            ShownPhase::Ready { since } => {
                Self::Ready(wire::ActivityReady { since: since.to_wire() })
            }
            ShownPhase::Started { at, identity, detached } => {
                Self::Started(wire::ActivityRunning { at: at.to_wire(), identity, detached })
            }
            ShownPhase::Backoff { until } => {
                Self::Backoff(wire::ActivityBackoff { until: until.to_wire() })
            }
        }
    }
}

impl TryFrom<shown_activity::Phase> for ShownPhase {
    type Error = InvalidField;

    fn try_from(wire: shown_activity::Phase) -> Result<Self, InvalidField> {
        Ok(match wire {
            shown_activity::Phase::Ready(ready) => {
                Self::Ready { since: word("ready.since", ready.since)? }
            }
            shown_activity::Phase::Started(started) => Self::Started {
                at: word("started.at", started.at)?,
                identity: started.identity,
                detached: started.detached,
            },
            shown_activity::Phase::Backoff(backoff) => {
                Self::Backoff { until: word("backoff.until", backoff.until)? }
            }
        })
    }
}

impl From<ShownChild> for wire::ShownChild {
    fn from(child: ShownChild) -> Self {
        Self {
            workflow: child.workflow.to_wire(),
            run: child.run.to_wire(),
            workflow_type: child.workflow_type,
            started: child.started,
        }
    }
}

impl TryFrom<wire::ShownChild> for ShownChild {
    type Error = InvalidField;

    fn try_from(wire: wire::ShownChild) -> Result<Self, InvalidField> {
        Ok(Self {
            workflow: word("workflow", wire.workflow)?,
            run: word("run", wire.run)?,
            workflow_type: wire.workflow_type,
            started: wire.started,
        })
    }
}
