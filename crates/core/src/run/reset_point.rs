//! Finds the workflow task that a reset goes back to.

use crate::{
    event::{Event, Fact, TaskCompleted},
    ids::{BuildId, EventNumber},
    run::Refusal,
};

/// The workflow task to go back to: code runs it again, with what it saw then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResetPoint {
    /// The first one that was completed.
    FirstTask,
    /// The last one that was completed.
    LastTask,
    /// The one with this event: its TaskScheduled, its TaskStarted, or its end.
    Event(EventNumber),
    /// The first one that this build completed.
    Build(BuildId),
    /// The last one before the step that failed.
    Failure,
}

/// A task that was started, by the numbers of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskPlace {
    pub(super) scheduled: EventNumber,
    pub(super) started: EventNumber,
}

/// How many tasks or builds a refusal names.
const NAMED_MAX: usize = 10;

impl ResetPoint {
    pub(super) fn find(&self, history: &[&Event]) -> Result<TaskPlace, Refusal> {
        let mut completed = history.iter().filter_map(|event| completed(event));
        match self {
            Self::FirstTask => completed.next().map(place).ok_or_else(none_completed),
            Self::LastTask => completed.next_back().map(place).ok_or_else(none_completed),
            Self::Event(number) => of_event(history, *number).ok_or_else(|| {
                let tasks = named(completed.map(|task| (task.started + 1).to_string()));
                Refusal::NoSuchTask(format!(
                    "event {number} belongs to no task that was started; tasks were completed by \
                     event {tasks}"
                ))
            }),
            Self::Build(build) => {
                let by_build = |task: &&TaskCompleted| task.build.as_ref() == Some(build);
                completed.clone().find(by_build).map(place).ok_or_else(|| {
                    let mut builds: Vec<_> =
                        completed.filter_map(|task| task.build.as_ref()).collect();
                    builds.dedup();
                    let builds = named(builds.into_iter().map(ToString::to_string));
                    Refusal::NoSuchTask(format!(
                        "build {build} completed none; builds of this run: {builds}"
                    ))
                })
            }
            Self::Failure => before_failure(history),
        }
    }
}

fn completed<'a>(event: &&'a Event) -> Option<&'a TaskCompleted> {
    let Fact::TaskCompleted(task) = &event.body.fact else { return None };
    Some(task)
}

const fn place(task: &TaskCompleted) -> TaskPlace {
    TaskPlace { scheduled: task.scheduled, started: task.started }
}

fn none_completed() -> Refusal {
    Refusal::NoSuchTask("none was completed; start the workflow again instead".into())
}

/// The first few names, in order.
fn named(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<_> = names.take(NAMED_MAX + 1).collect();
    if names.len() > NAMED_MAX {
        names.truncate(NAMED_MAX);
        names.push("and others".into());
    }
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

fn of_event(history: &[&Event], number: EventNumber) -> Option<TaskPlace> {
    let started_by = |scheduled: EventNumber| {
        history.iter().find_map(|event| match &event.body.fact {
            Fact::TaskStarted(task) if task.scheduled == scheduled => {
                Some(TaskPlace { scheduled, started: event.number })
            }
            _ => None,
        })
    };
    let event = history.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other event belongs to a task")]
    match &event.body.fact {
        Fact::TaskScheduled(_) => started_by(number),
        Fact::TaskStarted(task) => Some(TaskPlace { scheduled: task.scheduled, started: number }),
        Fact::TaskCompleted(task) => Some(place(task)),
        Fact::TaskFailed(task) => {
            Some(TaskPlace { scheduled: task.scheduled, started: task.started })
        }
        Fact::TaskTimedOut(task) => {
            Some(TaskPlace { scheduled: task.scheduled, started: task.started })
        }
        _ => None,
    }
}

/// Before an activity that failed: the last task before its failure, so that what was done by then
/// stays done; the activity is pending there, or code schedules it again. Before a child that failed: the
/// task that started it, because its close would be delivered again. Of recorded retries the first
/// attempt counts. If no step failed, code failed by itself: its last task runs again.
fn before_failure(history: &[&Event]) -> Result<TaskPlace, Refusal> {
    let last_before = |number: EventNumber| {
        let before = history.iter().filter(|event| event.number < number);
        before.filter_map(completed).next_back().map(place).ok_or_else(none_completed)
    };
    match history.iter().rev().find_map(|event| failed_step(history, event)) {
        Some(before) => last_before(before),
        None if ended_well(history) => {
            Err(Refusal::NoSuchTask("no step of the run failed; name a task to go back to".into()))
        }
        None => last_before(EventNumber::MAX),
    }
}

/// The run completed, or is open: there is nothing to retry.
fn ended_well(history: &[&Event]) -> bool {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other events do not end a run badly")]
    history.last().is_none_or(|event| match event.body.fact {
        Fact::RunFailed(_)
        | Fact::RunTimedOut(_)
        | Fact::RunTerminated(_)
        | Fact::RunCancelled(_) => false,
        _ => true,
    })
}

/// The event before which to go back, if this one says that a step failed.
fn failed_step(history: &[&Event], event: &Event) -> Option<EventNumber> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other event is the failure of a step")]
    let (activity, child) = match &event.body.fact {
        Fact::ActivityFailed(failed) => (Some(failed.scheduled), None),
        Fact::ActivityTimedOut(failed) => (Some(failed.scheduled), None),
        Fact::ChildStartFailed(failed) => (None, Some(failed.initiated)),
        Fact::ChildFailed(failed) => (None, Some(failed.initiated)),
        Fact::ChildTimedOut(failed) => (None, Some(failed.initiated)),
        Fact::ChildTerminated(failed) => (None, Some(failed.initiated)),
        _ => return None,
    };
    activity
        .and_then(|scheduled| first_failure(history, scheduled))
        .or_else(|| first_child(history, child?))
}

/// The first failure among all attempts of the activity that code has recorded.
fn first_failure(history: &[&Event], scheduled: EventNumber) -> Option<EventNumber> {
    let execution = |number: EventNumber| {
        let event = history.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        match &event.body.fact {
            Fact::ActivityScheduled(scheduled) => Some(&scheduled.execution),
            _ => None,
        }
    };
    let failed = execution(scheduled)?;
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other event is such a failure")]
    let same = |event: &&&Event| match &event.body.fact {
        Fact::ActivityFailed(other) => execution(other.scheduled) == Some(failed),
        Fact::ActivityTimedOut(other) => execution(other.scheduled) == Some(failed),
        _ => false,
    };
    history.iter().find(same).map(|event| event.number)
}

/// The start of the child, or of the first child of which it is a recorded retry.
fn first_child(history: &[&Event], initiated: EventNumber) -> Option<EventNumber> {
    let event = history.get(usize::try_from(initiated).ok()?.checked_sub(1)?)?;
    let Fact::ChildInitiated(failed) = &event.body.fact else { return None };
    let Some(first) = &failed.child.retry_of else { return Some(initiated) };
    let is_first = |event: &&&Event| match &event.body.fact {
        Fact::ChildInitiated(child) => child.child.workflow.workflow == *first,
        _ => false,
    };
    history.iter().find(is_first).map(|event| event.number)
}
