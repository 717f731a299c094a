//! Order in history decides every race: between a deadline and what it was the deadline of, the one
//! whose event comes first wins. What code made of it, and the events that its commands left, say so.

use abide_core::{
    event::{Event, Fact, Origin, WaitOpened},
    ids::{EventNumber, TimerId},
    run::Run,
};

use super::{
    Check, Checked, Violation,
    ledger::Story,
    signals::{kept, takes},
};
use crate::programs::Goal;

/// Judges every wait of a run, by its history and by what its code says of its steps.
pub fn first_in_history_wins(story: &Story, steps: &[String]) -> Checked {
    for event in &story.events {
        #[expect(clippy::wildcard_enum_match_arm, reason = "all others begin no wait with a race")]
        match &event.body.fact {
            Fact::WaitOpened(opened) => condition(story, event.number, opened)?,
            Fact::TimerStarted(started) => {
                if let Some(Origin::ExternalEvent { name }) = &started.spec.origin {
                    signal(story, steps, &started.spec.timer, name)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The events at the end of a condition wait are those of the winner.
fn condition(story: &Story, opened: EventNumber, wait: &WaitOpened) -> Checked {
    let Some((end, how)) = end_of(story, opened) else { return no_wait_is_forgotten(story, wait) };
    let fired = wait.spec.timer.as_ref().and_then(|timer| fired(story, timer));
    let fired = fired.filter(|fired| *fired < end);
    let goal = wait.spec.condition.key.as_deref().and_then(Goal::of_key);
    let reached = goal.and_then(|goal| reached(story, goal));
    let wrong = |why: &str| {
        let what = format!("{} {why}", wait.spec.wait);
        Err(Violation::of(Check::Races, story.run.id, what))
    };
    let before = end.checked_sub(1).and_then(|number| story.event(number));
    let cancelled = match (&wait.spec.timer, before.map(|event| &event.body.fact)) {
        (Some(timer), Some(Fact::TimerCancelled(cancelled))) => cancelled.timer == *timer,
        _ => false,
    };
    if wait.spec.timer.is_some() && cancelled == fired.is_some() {
        return wrong("ended, but its timer is still there, or had two ends");
    }
    match how {
        End::Satisfied if goal.is_some() && reached.is_none_or(|reached| reached > end) => {
            wrong("is satisfied, but it does not hold")
        }
        End::Satisfied if fired.zip(reached).is_some_and(|(fired, reached)| fired < reached) => {
            wrong("is satisfied, but its deadline came first")
        }
        End::TimedOut if fired.is_none() => wrong("timed out, but its timer has not fired"),
        End::TimedOut if fired.zip(reached).is_some_and(|(fired, reached)| reached < fired) => {
            wrong("timed out, but it held before its deadline")
        }
        End::Satisfied | End::TimedOut | End::Cancelled => Ok(()),
    }
}

/// At rest no open run waits for what has come.
fn no_wait_is_forgotten(story: &Story, wait: &WaitOpened) -> Checked {
    let goal = wait.spec.condition.key.as_deref().and_then(Goal::of_key);
    let held = goal.and_then(|goal| reached(story, goal));
    let fired = wait.spec.timer.as_ref().and_then(|timer| fired(story, timer));
    match held.or(fired) {
        Some(number) if story.run.open() => {
            let what = format!("{} waits, but event {number} ended it", wait.spec.wait);
            Err(Violation::of(Check::Races, story.run.id, what))
        }
        _ => Ok(()),
    }
}

/// How a condition wait ended.
#[derive(Clone, Copy)]
enum End {
    Satisfied,
    TimedOut,
    Cancelled,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others end no condition wait")]
fn end_of(story: &Story, opened: EventNumber) -> Option<(EventNumber, End)> {
    let end = |event: &Event| match &event.body.fact {
        Fact::WaitSatisfied(end) if end.opened == opened => Some((event.number, End::Satisfied)),
        Fact::WaitTimedOut(end) if end.opened == opened => Some((event.number, End::TimedOut)),
        Fact::WaitCancelled(end) if end.opened == opened => Some((event.number, End::Cancelled)),
        _ => None,
    };
    story.events.iter().find_map(end)
}

/// The event with which a goal was reached.
fn reached(story: &Story, goal: Goal) -> Option<EventNumber> {
    let (count, counts): (u64, fn(&Fact) -> bool) = match goal {
        Goal::Marks(count) => {
            (count, |fact| matches!(fact, Fact::SignalReceived(signal) if signal.name == "mark"))
        }
        Goal::Votes(count) => (
            count,
            |fact| matches!(fact, Fact::UpdateAccepted(update) if update.request.name == "vote"),
        ),
        Goal::TwoMarks | Goal::Slept => return None,
    };
    let mut counted = story.events.iter().filter(|event| counts(&event.body.fact));
    let last = usize::try_from(count).ok()?.checked_sub(1)?;
    counted.nth(last).map(|event| event.number)
}

/// The firing of a timer; ids of timers are never used again within a run.
fn fired(story: &Story, timer: &TimerId) -> Option<EventNumber> {
    let fires = |event: &&Event| matches!(&event.body.fact, Fact::TimerFired(fired) if fired.timer == *timer);
    story.events.iter().find(fires).map(|event| event.number)
}

/// A wait for a signal that came before its deadline has it; one that timed out let none pass.
fn signal(story: &Story, steps: &[String], timer: &TimerId, name: &str) -> Checked {
    let Some(fired) = fired(story, timer) else { return Ok(()) };
    let ended = |step: &String| {
        let (what, came) = step.split_once('=')?;
        let (_, waited) = what.split_once(' ')?;
        (waited == timer.as_str()).then(|| came.to_owned())
    };
    let place = steps.iter().position(|step| ended(step).is_some());
    let Some(came) = place.and_then(|place| ended(&steps[place])) else { return Ok(()) };
    let read_before = |text: &str| {
        let reads = |step: &String| step.split_once('=').is_some_and(|(_, read)| read == text);
        steps.iter().take(place.unwrap_or_default()).any(reads)
    };
    let signals = || story.events.iter().filter_map(kept).filter(|(_, of, _)| takes(name, of));
    let wrong = |why: String| {
        let what = format!("timer {timer}, which fired as event {fired}: {why}");
        Err(Violation::of(Check::Races, story.run.id, what))
    };
    if let Some((number, ..)) = signals().find(|(number, _, text)| came == *text && *number > fired)
    {
        return wrong(format!("its wait got signal {number} all the same"));
    }
    let timed_out = !signals().any(|(_, _, text)| came == text);
    let mut earlier = signals().take_while(|(number, ..)| *number < fired);
    match earlier.find(|(_, _, text)| timed_out && !read_before(text)) {
        Some((number, ..)) => wrong(format!("its wait timed out, but signal {number} was there")),
        None => Ok(()),
    }
}

/// No open run at rest has a condition whose deadline has passed: code has seen that.
pub fn no_passed_deadline_is_left(run: &Run) -> Option<String> {
    let wait = run.waits.values().find(|wait| wait.passed.is_some())?;
    Some(format!("{} is open although its deadline has come", wait.spec.wait))
}
