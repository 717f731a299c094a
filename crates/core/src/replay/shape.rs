//! What identifies a step, the same for a command and for the event that it becomes: a name and up
//! to three parts. Data that code may change without becoming different code (arguments, timeouts,
//! headers, due times) is not part of it. Shapes are compared, and printed in a mismatch.

use std::fmt;

use super::route::Route;
use crate::{
    command::Ask,
    event::{Condition, Fact, Marker, MarkerKind, Origin, Target, TimerSpec},
};

/// What identifies a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape<'a> {
    name: &'static str,
    parts: [&'a str; 3],
}

impl<'a> Shape<'a> {
    /// The shape of a command.
    pub(super) fn of_command(route: &'a Route, ask: &'a Ask) -> Self {
        let parts = match ask {
            Ask::ScheduleActivity(spec) => [spec.activity.as_str(), &spec.activity_type, ""],
            Ask::CancelActivity(activity) => one(activity.as_str()),
            Ask::StartTimer(spec) => timer_parts(spec),
            Ask::RescheduleTimer { timer, .. } | Ask::CancelTimer(timer) => {
                one(route.recorded_name(timer).as_str())
            }
            Ask::OpenWait(spec) => condition_parts(spec.wait.as_str(), &spec.condition),
            Ask::DescribeWait { wait, .. }
            | Ask::SatisfyWait(wait)
            | Ask::TimeOutWait(wait)
            | Ask::CancelWait(wait) => one(wait.as_str()),
            Ask::StartChild(child) => [
                child.workflow.namespace.as_str(),
                child.workflow.workflow.as_str(),
                &child.spec.workflow_type,
            ],
            Ask::SignalExternal { target, name, .. } => target_parts(target, name),
            Ask::CancelExternal { target, .. } => target_parts(target, ""),
            Ask::RecordMarker(marker) => marker_parts(marker),
            Ask::AcceptUpdate { update, .. }
            | Ask::RejectUpdate { update, .. }
            | Ask::CompleteUpdate { update, .. } => one(update.as_str()),
            Ask::UpsertSearchAttributes(_)
            | Ask::UpsertMemo(_)
            | Ask::CompleteRun(_)
            | Ask::FailRun(_)
            | Ask::CancelRun(_)
            | Ask::ContinueAsNew(_) => one(""),
        };
        Self { name: ask.event_name().unwrap_or("no event"), parts }
    }

    /// Shape of an event; one that comes from no command has only a name.
    pub(super) fn of_event(route: &'a Route, fact: &'a Fact) -> Self {
        Self { name: fact.name(), parts: event_parts(route, fact) }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all other events come from no command")]
fn event_parts<'a>(route: &'a Route, fact: &'a Fact) -> [&'a str; 3] {
    match fact {
        Fact::ActivityScheduled(scheduled) => {
            [scheduled.spec.activity.as_str(), &scheduled.spec.activity_type, ""]
        }
        Fact::ActivityCancelRequested(requested) => {
            one(route.activity(requested.scheduled).map_or("", |activity| activity.as_str()))
        }
        Fact::TimerStarted(started) => timer_parts(&started.spec),
        Fact::TimerRescheduled(rescheduled) => one(rescheduled.timer.as_str()),
        Fact::TimerCancelled(cancelled) => one(cancelled.timer.as_str()),
        Fact::WaitOpened(opened) => {
            condition_parts(opened.spec.wait.as_str(), &opened.spec.condition)
        }
        Fact::WaitDescribed(described) => one(described.wait.as_str()),
        Fact::WaitSatisfied(satisfied) => one(satisfied.wait.as_str()),
        Fact::WaitTimedOut(timed_out) => one(timed_out.wait.as_str()),
        Fact::WaitCancelled(cancelled) => one(cancelled.wait.as_str()),
        Fact::ChildInitiated(initiated) => [
            initiated.child.workflow.namespace.as_str(),
            initiated.child.workflow.workflow.as_str(),
            &initiated.child.spec.workflow_type,
        ],
        Fact::ExternalSignalInitiated(signal) => target_parts(&signal.target, &signal.name),
        Fact::ExternalCancelInitiated(cancel) => target_parts(&cancel.target, ""),
        Fact::MarkerRecorded(recorded) => marker_parts(&recorded.marker),
        Fact::UpdateAccepted(accepted) => one(accepted.update.as_str()),
        Fact::UpdateCompleted(completed) => one(completed.update.as_str()),
        _ => one(""),
    }
}

const fn one(part: &str) -> [&str; 3] {
    [part, "", ""]
}

fn timer_parts(spec: &TimerSpec) -> [&str; 3] {
    let (origin, detail) = match &spec.origin {
        None => ("no origin", ""),
        Some(Origin::CreateTimer) => ("sleep", ""),
        Some(Origin::ExternalEvent { name }) if spec.optional() => {
            ("signal without deadline", &**name)
        }
        Some(Origin::ExternalEvent { name }) => ("signal", &**name),
        Some(Origin::Condition { key, .. }) => ("condition", key.as_deref().unwrap_or_default()),
        Some(Origin::ActivityRetry { execution }) => ("activity retry", execution.as_str()),
        Some(Origin::ChildWorkflowRetry { workflow }) => ("child retry", workflow.as_str()),
    };
    [spec.timer.as_str(), origin, detail]
}

fn condition_parts<'a>(wait: &'a str, condition: &'a Condition) -> [&'a str; 3] {
    [wait, condition.key.as_deref().unwrap_or_default(), ""]
}

fn target_parts<'a>(target: &'a Target, name: &'a str) -> [&'a str; 3] {
    [target.workflow.namespace.as_str(), target.workflow.workflow.as_str(), name]
}

fn marker_parts(marker: &Marker) -> [&str; 3] {
    let (kind, name) = match &marker.kind {
        MarkerKind::SideEffect => ("side effect", ""),
        MarkerKind::Version => ("version", ""),
        MarkerKind::LocalActivity => ("local activity", ""),
        MarkerKind::Named(name) => ("named", &**name),
    };
    [kind, name, &marker.id]
}

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        let mut separator = " ";
        for part in self.parts.iter().filter(|part| !part.is_empty()) {
            write!(f, "{separator}{part}")?;
            separator = ", ";
        }
        Ok(())
    }
}
