//! Order in history decides every race: between a wait and its deadline, the first event wins. The
//! checks compare the events at the end of a wait, and what code reports about its steps.

use std::borrow::Cow;

use abide_core::{
    event::{Event, Fact, Mover, Origin, WaitOpened},
    ids::{EventNumber, TimerId},
    payload::Payload,
    run::Run,
    time::Timestamp,
};

use super::{
    Check, Checked, Violation,
    ledger::Story,
    signals::{kept, takes},
};
use crate::programs::Goal;

type Judged = Result<(), String>;

/// Checks the condition waits of a run that ended with event `since` or later.
pub fn conditions_end_as_history_says(story: &Story, since: EventNumber) -> Checked {
    let ended = story.events.iter().rev().take_while(|event| event.number >= since);
    let judged = ended.filter_map(|event| end_of(&event.body.fact).map(|end| (event.number, end)));
    let judge = |(number, (opened, how))| condition_end(&story.events, number, opened, how);
    judged.into_iter().try_for_each(judge).map_err(|what| wrong(story, what))
}

/// Checks every wait of a run at rest against its history and what its code reports about its
/// steps.
pub fn first_in_history_wins(story: &Story, steps: &[String]) -> Checked {
    for event in &story.events {
        #[expect(clippy::wildcard_enum_match_arm, reason = "all others begin no wait with a race")]
        let judged = match &event.body.fact {
            Fact::WaitOpened(wait) if story.run.waits.contains_key(&wait.spec.wait) => {
                no_wait_is_forgotten(&story.events, wait)
            }
            Fact::TimerStarted(started) => match &started.spec.origin {
                Some(Origin::ExternalEvent { name }) => {
                    signal_wait(&story.events, steps, &started.spec.timer, name)
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        };
        judged.map_err(|what| wrong(story, what))?;
    }
    moves_are_kept(&story.events, steps).map_err(|what| wrong(story, what))
}

/// Number of tasks that saw both the firing of a timer and a signal, in either order.
pub fn close_calls(events: &[Event]) -> usize {
    let tasks = events.split(|event| matches!(event.body.fact, Fact::TaskStarted(_)));
    let close = |seen: &&[Event]| {
        seen.iter().any(|event| matches!(event.body.fact, Fact::TimerFired(_)))
            && seen.iter().any(|event| matches!(event.body.fact, Fact::SignalReceived(_)))
    };
    tasks.filter(close).count()
}

/// No open run at rest has a condition whose deadline has passed without code having seen it.
pub fn passed_deadline(run: &Run) -> Option<String> {
    let wait = run.waits.values().find(|wait| wait.passed.is_some())?;
    Some(format!("{} is open although its deadline has come", wait.spec.wait))
}

fn wrong(story: &Story, what: String) -> Violation {
    Violation::of(Check::Races, story.run.id, what)
}

/// How a condition wait ended.
#[derive(Clone, Copy, Debug)]
enum RaceEnd {
    Satisfied,
    TimedOut,
    Cancelled,
}

/// The wait that an event ends, identified by the event that opened it.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others end no condition wait")]
const fn end_of(fact: &Fact) -> Option<(EventNumber, RaceEnd)> {
    match fact {
        Fact::WaitSatisfied(end) => Some((end.opened, RaceEnd::Satisfied)),
        Fact::WaitTimedOut(end) => Some((end.opened, RaceEnd::TimedOut)),
        Fact::WaitCancelled(end) => Some((end.opened, RaceEnd::Cancelled)),
        _ => None,
    }
}

/// A satisfied wait has its timer cancelled right before, or the firing comes after the winner; one
/// that timed out has its firing before.
fn condition_end(events: &[Event], end: EventNumber, opened: EventNumber, how: RaceEnd) -> Judged {
    let Some(Fact::WaitOpened(WaitOpened { spec, .. })) = fact(events, opened) else {
        return Err(format!("event {end} ends a wait that event {opened} did not open"));
    };
    let wrong = |why: &str| Err(format!("{} ended by event {end}: {why}", spec.wait));
    let fired = spec.timer.as_ref().and_then(|timer| fired(events, timer));
    let cancelled = matches!(
        fact(events, end - 1),
        Some(Fact::TimerCancelled(cancelled)) if Some(&cancelled.timer) == spec.timer.as_ref()
    );
    if spec.timer.is_some() && cancelled == fired.is_some() {
        return wrong("its timer is still there, or has two ends");
    }
    let winner = winner(events, spec.condition.key.as_deref());
    let reached = winner.known().filter(|reached| *reached < end);
    match how {
        RaceEnd::Satisfied if winner != Winner::Untold && reached.is_none() => {
            wrong("it does not hold")
        }
        RaceEnd::Satisfied
            if fired.zip(reached).is_some_and(|(fired, reached)| fired < reached) =>
        {
            wrong("it is satisfied, but its deadline came first")
        }
        RaceEnd::TimedOut if fired.is_none() => wrong("it timed out, but its timer has not fired"),
        RaceEnd::TimedOut if fired.zip(reached).is_some_and(|(fired, reached)| reached < fired) => {
            wrong("it timed out, but it held before its deadline")
        }
        RaceEnd::Satisfied | RaceEnd::TimedOut | RaceEnd::Cancelled => Ok(()),
    }
}

/// A condition that code still waits for does not hold.
fn no_wait_is_forgotten(events: &[Event], wait: &WaitOpened) -> Judged {
    match winner(events, wait.spec.condition.key.as_deref()).known() {
        Some(number) => {
            Err(format!("{} is open, but it holds since event {number}", wait.spec.wait))
        }
        None => Ok(()),
    }
}

/// A wait for a signal that arrived before the deadline has it; one that timed out missed none.
fn signal_wait(events: &[Event], steps: &[String], timer: &TimerId, name: &str) -> Judged {
    let Some(fired) = fired(events, timer) else { return Ok(()) };
    let ended = |step: &String| {
        let (what, came) = step.split_once('=')?;
        let (_, waited) = what.split_once(' ')?;
        (waited == timer.as_str()).then(|| came.to_owned())
    };
    let mut ends = steps.iter().enumerate().filter_map(|(place, step)| Some((place, ended(step)?)));
    let Some((place, came)) = ends.next() else { return Ok(()) };
    let signals = || events.iter().filter_map(kept).filter(|(_, of, _)| takes(name, of));
    if let Some((number, ..)) = signals().find(|(_, _, text)| came == *text) {
        let late = number > fired;
        let what = || format!("{timer} fired as event {fired}, its wait got signal {number}");
        return if late { Err(what()) } else { Ok(()) };
    }
    let read_before = |text: &str| {
        let reads = |step: &String| step.split_once('=').is_some_and(|(_, read)| read == text);
        steps.iter().take(place).any(reads)
    };
    let mut earlier = signals().take_while(|(number, ..)| *number < fired);
    match earlier.find(|(_, _, text)| !read_before(text)) {
        Some((number, ..)) => {
            Err(format!("{timer} fired as event {fired} and won, but signal {number} was there"))
        }
        None => Ok(()),
    }
}

/// Code that was told that its reschedule succeeded does not see the old deadline, unless that was the
/// later one: a signal `pull` may have brought it forward before. Signals `push` reschedule a timer and
/// note which; what comes after a push and before the next task is in its group.
fn moves_are_kept(events: &[Event], steps: &[String]) -> Judged {
    let pushes = events.iter().filter(|event| is_push(&event.body.fact));
    let told = steps.iter().filter_map(|step| step.strip_prefix("push="));
    for (push, told) in pushes.zip(told) {
        let Some((timer, moved_to)) = moved(told) else { continue };
        let after = events.iter().skip_while(|event| event.number <= push.number);
        let mut seen = after.take_while(|event| !matches!(event.body.fact, Fact::TaskStarted(_)));
        let next = seen.find(|event| concerns(&event.body.fact, &timer));
        if let Some(Fact::TimerFired(overtaken)) = next.map(|event| &event.body.fact)
            && overtaken.fire_at < moved_to
            && firing(events, &timer).is_some_and(|(_, at)| at == overtaken.fire_at)
            && steps.iter().any(|step| timed_out(step, &timer))
        {
            let number = push.number;
            return Err(format!("signal {number} moved {timer}, and the old deadline came"));
        }
    }
    Ok(())
}

/// The timer that a push has rescheduled, and its new due time.
fn moved(told: &str) -> Option<(TimerId, Timestamp)> {
    let (timer, how) = told.rsplit_once(", ")?.1.split_once(' ')?;
    Some((timer.into(), how.strip_prefix("Ok(")?.strip_suffix(')')?.parse().ok()?))
}

/// Whether the step waited until this timer fired.
fn timed_out(step: &str, timer: &TimerId) -> bool {
    let Some((what, came)) = step.split_once('=') else { return false };
    let Some((subject, waited)) = what.split_once(' ') else { return false };
    waited == timer.as_str() && (subject == "sleep" || came == "timed out")
}

fn is_push(fact: &Fact) -> bool {
    matches!(fact, Fact::SignalReceived(signal) if signal.name == "push")
}

/// Whether the event reschedules the timer, or is its firing.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others move no deadline")]
fn concerns(fact: &Fact, timer: &TimerId) -> bool {
    match fact {
        Fact::TimerFired(fired) => fired.timer == *timer,
        Fact::TimerRescheduled(moved) => moved.timer == *timer,
        Fact::SignalReceived(signal) => ["push", "pull"].contains(&signal.name.as_str()),
        _ => false,
    }
}

fn fact(events: &[Event], number: EventNumber) -> Option<&Fact> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    events.get(index).map(|event| &event.body.fact)
}

/// What made a condition hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Winner {
    /// History does not say.
    Untold,
    /// Nothing yet.
    Nothing,
    Event(EventNumber),
}

impl Winner {
    const fn known(self) -> Option<EventNumber> {
        match self {
            Self::Event(number) => Some(number),
            Self::Untold | Self::Nothing => None,
        }
    }
}

/// The event that makes a condition with this key hold.
fn winner(events: &[Event], key: Option<&str>) -> Winner {
    let Some(key) = key else { return Winner::Untold };
    if let Some(request) = key.strip_prefix("approval:") {
        return decided(events, request);
    }
    match Goal::of_key(key) {
        Some(goal) => reached(events, goal).map_or(Winner::Nothing, Winner::Event),
        None => Winner::Untold,
    }
}

/// The first decision on a request that one person decides alone. Decisions sent as signals may be
/// refused without a trace in history, and a person who hands over does not decide.
fn decided(events: &[Event], request: &str) -> Winner {
    let named = format!("\"request\":\"{request}\"");
    let answer = |event: &&Event| match &event.body.fact {
        Fact::UpdateAccepted(update) => text(&update.request.input).contains(&named),
        Fact::SignalReceived(signal) => text(&signal.input).contains(&named),
        _ => false,
    };
    let decides = |event: &Event| match &event.body.fact {
        Fact::UpdateAccepted(update) => text(&update.request.input).contains("\"decision\":"),
        _ => false,
    };
    let mut answers = events.iter().filter(answer).peekable();
    let first = answers.peek().map(|event| reached_code(events, event));
    if !request.ends_with(".1") || !answers.all(decides) {
        return Winner::Untold;
    }
    first.map_or(Winner::Nothing, Winner::Event)
}

fn text(payloads: &[Payload]) -> Cow<'_, str> {
    payloads.first().map_or_else(Cow::default, |payload| String::from_utf8_lossy(&payload.data))
}

/// The event with which a goal was reached.
fn reached(events: &[Event], goal: Goal) -> Option<EventNumber> {
    let counts = |fact: &Fact| match (goal, fact) {
        (Goal::Marks(_), Fact::SignalReceived(signal)) => signal.name == "mark",
        (Goal::Votes(_), Fact::UpdateAccepted(update)) => update.request.name == "vote",
        _ => false,
    };
    let (Goal::Marks(count) | Goal::Votes(count)) = goal else { return None };
    let before = usize::try_from(count).ok()?.checked_sub(1)?;
    let counted = events.iter().filter(|event| counts(&event.body.fact));
    let mut counted: Vec<_> = counted.map(|event| reached_code(events, event)).collect();
    counted.sort_unstable();
    counted.get(before).copied()
}

/// The event that shows code the input whose acceptance or arrival this event is. An update that another
/// run had taken is in history before code accepts it.
fn reached_code(events: &[Event], event: &Event) -> EventNumber {
    let Fact::UpdateAccepted(accepted) = &event.body.fact else { return event.number };
    let admitted = events.iter().find(|event| {
        matches!(&event.body.fact, Fact::UpdateAdmitted(it) if it.update == accepted.update)
    });
    admitted.map_or(event.number, |admitted| admitted.number)
}

/// The firing of a timer that counts: code has not rescheduled the timer since. Ids of timers are
/// unique within a run.
fn firing(events: &[Event], timer: &TimerId) -> Option<(EventNumber, Timestamp)> {
    let last = events.iter().rev().find_map(|event| match &event.body.fact {
        Fact::TimerFired(fired) if fired.timer == *timer => {
            Some(Some((event.number, fired.fire_at)))
        }
        Fact::TimerRescheduled(moved) if moved.timer == *timer && moved.by == Mover::Code => {
            Some(None)
        }
        _ => None,
    });
    last.flatten()
}

fn fired(events: &[Event], timer: &TimerId) -> Option<EventNumber> {
    firing(events, timer).map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use abide_core::event::{
        Body, Condition, SignalReceived, TimerCancelled, TimerFired, TimerRescheduled,
        WaitSatisfied, WaitSpec, WaitTimedOut,
    };

    use super::*;

    const TIMER: &str = "t";

    fn history(facts: Vec<Fact>) -> Vec<Event> {
        let event = |(index, fact): (usize, Fact)| Event {
            number: EventNumber::try_from(index).unwrap() + 1,
            time: Timestamp::EPOCH,
            body: Body::new(fact),
        };
        facts.into_iter().enumerate().map(event).collect()
    }

    fn signal(name: &str, text: &str) -> Fact {
        let input = vec![Payload::new(text.to_owned())];
        SignalReceived { name: name.into(), input, ..SignalReceived::default() }.into()
    }

    fn firing() -> Fact {
        TimerFired { timer: TIMER.into(), started: 1, fire_at: Timestamp::EPOCH }.into()
    }

    fn armed_again() -> Fact {
        let fire_at = Timestamp::from_unix_millis(1);
        TimerRescheduled { timer: TIMER.into(), fire_at, by: Mover::Code }.into()
    }

    fn cancelled() -> Fact {
        TimerCancelled { timer: TIMER.into(), started: 1 }.into()
    }

    fn one_mark() -> Condition {
        Condition { key: Goal::Marks(1).key(), fingerprint: None }
    }

    fn satisfied() -> Fact {
        WaitSatisfied { wait: "w".into(), opened: 1, condition: one_mark() }.into()
    }

    fn timed_out() -> Fact {
        WaitTimedOut { wait: "w".into(), opened: 1, condition: one_mark() }.into()
    }

    /// Checks a condition wait for one mark with a deadline, given what follows its start.
    fn condition(after: Vec<Fact>) -> bool {
        let timer = Some(TIMER.into());
        let spec = WaitSpec { wait: "w".into(), condition: one_mark(), timer, details: None };
        let mut facts = vec![WaitOpened { spec, task_completed: 0 }.into()];
        facts.extend(after);
        let events = history(facts);
        let last = events.last().unwrap();
        let (opened, how) = end_of(&last.body.fact).unwrap();
        condition_end(&events, last.number, opened, how).is_ok()
    }

    #[test]
    fn a_condition_ends_as_its_first_event_says() {
        let mark = || signal("mark", "m");
        assert!(condition(vec![mark(), cancelled(), satisfied()]));
        assert!(condition(vec![mark(), firing(), satisfied()]));
        assert!(condition(vec![firing(), timed_out()]));
        assert!(condition(vec![firing(), mark(), timed_out()]));
        assert!(condition(vec![firing(), armed_again(), mark(), cancelled(), satisfied()]));
        assert!(condition(vec![firing(), armed_again(), firing(), timed_out()]));
        assert!(!condition(vec![firing(), armed_again(), timed_out()]), "it was armed again");
        assert!(!condition(vec![cancelled(), satisfied()]), "it does not hold");
        assert!(!condition(vec![firing(), mark(), satisfied()]), "the deadline came first");
        assert!(!condition(vec![mark(), firing(), timed_out()]), "it held first");
        assert!(!condition(vec![mark(), satisfied()]), "the timer is left");
        assert!(!condition(vec![mark(), timed_out()]), "the timer has not fired");
        assert!(!condition(vec![firing(), mark(), cancelled(), timed_out()]), "two ends");
    }

    /// Checks a wait for the signal `go` against the history and what code reports about its steps.
    fn receives(facts: Vec<Fact>, steps: &[&str]) -> bool {
        let steps: Vec<_> = steps.iter().map(|step| (*step).to_owned()).collect();
        signal_wait(&history(facts), &steps, &TIMER.into(), "go").is_ok()
    }

    #[test]
    fn a_signal_wait_ends_as_its_first_event_says() {
        let go = || signal("go", "1");
        assert!(receives(vec![go(), firing()], &["go t=1"]));
        assert!(receives(vec![firing(), go()], &["go t=timed out", "go=1"]));
        assert!(receives(vec![go(), firing()], &["go u=1", "go t=timed out"]));
        assert!(!receives(vec![firing(), go()], &["go t=1"]), "the deadline came first");
        assert!(!receives(vec![go(), firing()], &["go t=timed out"]), "the signal came first");
        assert!(!receives(vec![go(), firing()], &["go t=timed out", "go u=1"]));
    }

    /// Checks a sleep whose deadline a push has rescheduled against the history and what code
    /// reports.
    fn pushes(facts: Vec<Fact>, steps: &[&str]) -> bool {
        let steps: Vec<_> = steps.iter().map(|step| (*step).to_owned()).collect();
        moves_are_kept(&history(facts), &steps).is_ok()
    }

    #[test]
    fn a_deadline_that_was_moved_away_does_not_come() {
        let push = || signal("push", "p");
        let moved_to = |at: Timestamp| format!("push=p, t Ok({at})");
        let (later, late) = (moved_to(Timestamp::NEVER), "push=p, t Err(Over)");
        let (taken, sooner) = (later.as_str(), moved_to(Timestamp::EPOCH));
        let slept = "sleep t=over";
        assert!(pushes(vec![push(), firing()], &[taken]), "it is still waited for");
        assert!(pushes(vec![push(), firing(), armed_again()], &[taken]));
        assert!(pushes(vec![firing(), push()], &[slept, late]));
        let pull = || signal("pull", "1");
        assert!(pushes(vec![push(), pull(), firing()], &[taken, slept]), "it was moved again");
        assert!(pushes(vec![push(), firing()], &["push=p, t Err(Past)", slept]));
        assert!(pushes(vec![push(), firing()], &[&sooner, slept]), "the new deadline has come too");
        assert!(!pushes(vec![push(), firing()], &[taken, slept]), "the old deadline came");
    }
}
