//! Every event fits the run before it: its time, its position, and what it opens or closes.

use abide_core::{
    event::{Event, Fact, Mover, TimerFired, TimerRescheduled},
    failure::FailureKind,
    ids::EventNumber,
    note::{AttemptEnded, Note},
    run::{FiredTimer, Run},
    time::Timestamp,
};

use super::{Check, Checked, Violation, ledger::Story};

/// Position in a history between two tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskPosition {
    #[default]
    Between,
    /// A task was started: only its end may follow.
    Started,
    /// This event completed a task: its commands may follow.
    Commands(EventNumber),
}

/// All checks on one event.
pub fn check(run: &Run, place: &mut TaskPosition, event: &Event, latest: Timestamp) -> Checked {
    nothing_after_the_close(run, event)?;
    times_are_monotonic(run, event)?;
    not_in_the_future(run, event, latest)?;
    order(run, place, event)?;
    timers(run, event, latest)?;
    activities(run, event)?;
    children(run, event)
}

fn nothing_after_the_close(run: &Run, event: &Event) -> Checked {
    if run.open() {
        return Ok(());
    }
    let what = format!("{} after the close", show(event));
    Err(Violation::of(Check::Order, run.id, what))
}

fn times_are_monotonic(run: &Run, event: &Event) -> Checked {
    if event.time >= run.last_time {
        return Ok(());
    }
    let what = format!("{} at {} after {}", show(event), event.time, run.last_time);
    Err(Violation::of(Check::Times, run.id, what))
}

/// The event is not later than any clock has shown.
pub fn not_in_the_future(run: &Run, event: &Event, latest: Timestamp) -> Checked {
    if event.time <= latest {
        return Ok(());
    }
    let what = format!("{} at {} while it is {latest}", show(event), event.time);
    Err(Violation::of(Check::Times, run.id, what))
}

/// Commands come directly after TaskCompleted, and the end of a task directly after its start.
fn order(run: &Run, place: &mut TaskPosition, event: &Event) -> Checked {
    let fact = &event.body.fact;
    let wrong =
        |why: &str| Err(Violation::of(Check::Order, run.id, format!("{} {why}", show(event))));
    let ends_task =
        matches!(fact, Fact::TaskCompleted(_) | Fact::TaskFailed(_) | Fact::TaskTimedOut(_));
    if (*place == TaskPosition::Started) != ends_task {
        return wrong("does not stand between the start of a task and its end, or does");
    }
    // A run that is cancelled before its code starts has no task to complete, and a schedule has none.
    let unbegun = matches!(fact, Fact::RunCancelled(_)) && run.first_task_at.is_some();
    let without_task = unbegun || run.schedule.is_some();
    if let Some(by) = command_of(fact).filter(|_| !without_task) {
        return match *place {
            TaskPosition::Commands(completed) if by.is_none_or(|by| by == completed) => Ok(()),
            TaskPosition::Commands(_) | TaskPosition::Between | TaskPosition::Started => {
                wrong("does not follow its TaskCompleted")
            }
        };
    }
    *place = match fact {
        Fact::TaskStarted(_) => TaskPosition::Started,
        Fact::TaskCompleted(_) => TaskPosition::Commands(event.number),
        _ => TaskPosition::Between,
    };
    Ok(())
}

/// For the event of a command: the TaskCompleted that it names, if it names one.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others come from outside")]
fn command_of(fact: &Fact) -> Option<Option<EventNumber>> {
    Some(match fact {
        Fact::ActivityScheduled(event) => Some(event.task_completed),
        Fact::ActivityCancelRequested(event) => Some(event.task_completed),
        Fact::TimerStarted(event) => Some(event.task_completed),
        Fact::WaitOpened(event) => Some(event.task_completed),
        Fact::ChildInitiated(event) => Some(event.task_completed),
        Fact::ExternalSignalInitiated(event) => Some(event.task_completed),
        Fact::ExternalCancelInitiated(event) => Some(event.task_completed),
        Fact::MarkerRecorded(event) => Some(event.task_completed),
        Fact::SearchAttributesUpserted(event) => Some(event.task_completed),
        Fact::MemoUpserted(event) => Some(event.task_completed),
        Fact::TimerRescheduled(event) if event.by == Mover::Code => None,
        Fact::TimerCancelled(_)
        | Fact::WaitDescribed(_)
        | Fact::WaitSatisfied(_)
        | Fact::WaitTimedOut(_)
        | Fact::WaitCancelled(_)
        | Fact::UpdateAccepted(_)
        | Fact::UpdateCompleted(_)
        | Fact::RunCompleted(_)
        | Fact::RunFailed(_)
        | Fact::RunCancelled(_)
        | Fact::RunContinuedAsNew(_) => None,
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others are not about timers")]
fn timers(run: &Run, event: &Event, latest: Timestamp) -> Checked {
    match &event.body.fact {
        Fact::TimerFired(fired) => timer_fires_once_and_in_time(run, event, fired, latest),
        Fact::TimerCancelled(cancelled) if !run.timers.contains_key(&cancelled.timer) => {
            let what = format!("{} of timer {}, which is not open", show(event), cancelled.timer);
            Err(Violation::of(Check::Timers, run.id, what))
        }
        Fact::TimerStarted(started) if run.timers.contains_key(&started.spec.timer) => {
            let what = format!("{} of timer {}, which is open", show(event), started.spec.timer);
            Err(Violation::of(Check::Timers, run.id, what))
        }
        Fact::TimerRescheduled(moved) => move_is_allowed(run, event, moved),
        _ => Ok(()),
    }
}

/// An open timer is rescheduled, by code also one that fired before its task, and from outside only
/// as its guards allow.
fn move_is_allowed(run: &Run, event: &Event, moved: &TimerRescheduled) -> Checked {
    let wrong = |why: &str| {
        let what = format!("{} of timer {} to {}: {why}", show(event), moved.timer, moved.fire_at);
        Err(Violation::of(Check::Timers, run.id, what))
    };
    let fired = |fired: &FiredTimer| fired.timer.spec.timer == moved.timer;
    let by_code = moved.by == Mover::Code;
    let Some(timer) = run.timers.get(&moved.timer) else {
        let armed_again = by_code && run.fired.iter().any(fired);
        return if armed_again { Ok(()) } else { wrong("it is not open") };
    };
    let Mover::Outside { received_at, .. } = &moved.by else { return Ok(()) };
    let guards = timer.spec.guards;
    if moved.fire_at.is_never() || timer.spec.optional() {
        return wrong("a wait without a deadline gets one, or one with a deadline loses it");
    }
    if moved.fire_at < *received_at {
        return wrong("that time had passed");
    }
    if guards.not_after.is_some_and(|not_after| moved.fire_at > not_after) {
        return wrong("that is later than allowed");
    }
    if guards.max_extensions.is_some_and(|most| timer.moves >= most) {
        return wrong("it was moved as often as allowed");
    }
    Ok(())
}

fn timer_fires_once_and_in_time(
    run: &Run,
    event: &Event,
    fired: &TimerFired,
    latest: Timestamp,
) -> Checked {
    let wrong = |why: String| {
        let what = format!("{} of timer {} {why}", show(event), fired.timer);
        Err(Violation::of(Check::Timers, run.id, what))
    };
    let Some(timer) = run.timers.get(&fired.timer) else {
        return wrong("which is not open".into());
    };
    if timer.started != fired.started {
        return wrong("of another start".into());
    }
    if event.time < fired.fire_at || latest < fired.fire_at || fired.fire_at < timer.spec.fire_at {
        let due = timer.spec.fire_at;
        return wrong(format!("at {}, due at {}, open until {due}", event.time, fired.fire_at));
    }
    Ok(())
}

/// The activity that an event ends, and whether it succeeded.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others do not end an activity")]
pub const fn activity_end(fact: &Fact) -> Option<(EventNumber, bool)> {
    match fact {
        Fact::ActivityCompleted(close) => Some((close.scheduled, true)),
        Fact::ActivityFailed(close) => Some((close.scheduled, false)),
        Fact::ActivityTimedOut(close) => Some((close.scheduled, false)),
        Fact::ActivityCancelled(close) => Some((close.scheduled, false)),
        _ => None,
    }
}

fn activities(run: &Run, event: &Event) -> Checked {
    let ended = activity_end(&event.body.fact).map(|(scheduled, _)| scheduled);
    let scheduled = match &event.body.fact {
        Fact::ActivityStarted(started) => Some(started.scheduled),
        _ => ended,
    };
    let Some(scheduled) = scheduled else { return Ok(()) };
    if run.activities.contains_key(&scheduled) {
        return Ok(());
    }
    let what = format!("{} of activity {scheduled}, which is not pending", show(event));
    Err(Violation::of(Check::Activities, run.id, what))
}

/// An attempt that is completed from outside is not lost with its worker.
pub fn detached_is_not_lost(story: &Story, note: &Note) -> Checked {
    match note {
        Note::AttemptEnded(AttemptEnded { scheduled, start, failure, .. })
            if failure.kind == FailureKind::WorkerLost
                && story.detached.contains(&(*scheduled, *start)) =>
        {
            let what = format!("activity {scheduled}: start {start} is detached, and was lost");
            Err(Violation::of(Check::Activities, story.run.id, what))
        }
        _ => Ok(()),
    }
}

/// A child starts once and before it closes, and closes once.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others are not about children")]
fn children(run: &Run, event: &Event) -> Checked {
    let (initiated, must_be_started) = match &event.body.fact {
        Fact::ChildStarted(started) => (started.initiated, false),
        Fact::ChildStartFailed(failed) => (failed.initiated, false),
        Fact::ChildCompleted(close) => (close.initiated, true),
        Fact::ChildFailed(close) => (close.initiated, true),
        Fact::ChildTimedOut(close) => (close.initiated, true),
        Fact::ChildCancelled(close) => (close.initiated, true),
        Fact::ChildTerminated(close) => (close.initiated, true),
        _ => return Ok(()),
    };
    let wrong = |why: &str| {
        let what = format!("{} of child {initiated}, which {why}", show(event));
        Err(Violation::of(Check::Families, run.id, what))
    };
    match run.children.get(&initiated) {
        None => wrong("is not pending"),
        Some(child) if must_be_started && !child.started => wrong("was not started"),
        Some(_) => Ok(()),
    }
}

fn show(event: &Event) -> String {
    format!("event {} {}", event.number, event.body.fact.name())
}
