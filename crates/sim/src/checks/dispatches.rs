//! What workers got: durable before dispatch, current, and never twice where that is forbidden.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    attempt::ActivityToken,
    event::Delivery,
    ids::{EventNumber, RunId, StartId},
    report::TaskToken,
    run::{ActivityGiven, GivenTask},
};

use super::{Check, Checked, Violation, ledger::Ledger};

#[derive(Debug, Default)]
pub struct Dispatches {
    tasks: BTreeSet<(RunId, StartId)>,
    /// The last attempt that was dispatched, and all starts.
    attempts: BTreeMap<(RunId, EventNumber), (u32, BTreeSet<u32>)>,
}

impl Dispatches {
    /// A workflow task is dispatched. Its start may be stale by now; the worker will learn that.
    pub fn task(
        &mut self,
        ledger: &Ledger,
        token: &TaskToken,
        given: &GivenTask,
        last_event: EventNumber,
    ) -> Checked {
        let wrong = |check, what: String| Err(Violation::of(check, token.run, what));
        let Some(story) = ledger.stories.get(&token.run) else {
            return wrong(Check::DurableDispatch, "a task of a run that is not committed".into());
        };
        if last_event > story.run.last_event || given.previous > story.run.completed {
            let committed = story.run.last_event;
            let what = format!("a task on event {last_event}, {committed} are committed");
            return wrong(Check::DurableDispatch, what);
        }
        if given.tail.first().is_none_or(|event| event.number != last_event + 1) {
            let what = format!("a task whose own events do not follow event {last_event}");
            return wrong(Check::DurableDispatch, what);
        }
        if !self.tasks.insert((token.run, token.start)) {
            return wrong(Check::NoSecondDispatch, format!("task start {:?}", token.start));
        }
        Ok(())
    }

    /// An activity is dispatched. `owner`: by the machine that owns the shard.
    pub fn activity(
        &mut self,
        ledger: &Ledger,
        token: &ActivityToken,
        given: &ActivityGiven,
        owner: bool,
    ) -> Checked {
        let ActivityToken { run, scheduled, start, .. } = *token;
        let wrong = |check, what: &str| {
            let what = format!("activity {scheduled}, start {start}: {what}");
            Err(Violation::of(check, run, what))
        };
        let story = ledger.stories.get(&run);
        let Some(story) = story.filter(|story| story.attempts.contains(&(scheduled, start))) else {
            return wrong(Check::DurableDispatch, "its start is not committed");
        };
        // A timeout may have ended it in the very batch that started it; a result may not.
        if owner && story.completed.contains(&scheduled) {
            return wrong(Check::NoSecondDispatch, "it is completed");
        }
        let (last, starts) = self.attempts.entry((run, scheduled)).or_default();
        if !starts.insert(start) {
            return wrong(Check::NoSecondDispatch, "it was given before");
        }
        if given.spec.delivery == Delivery::AtMostOnce && given.attempt <= *last {
            return wrong(Check::NoSecondDispatch, "an at-most-once attempt was given before");
        }
        *last = given.attempt.max(*last);
        Ok(())
    }
}

/// A result was accepted: no later start of the activity exists.
pub fn only_the_last_start_counts(
    ledger: &Ledger,
    run: RunId,
    scheduled: EventNumber,
    start: u32,
) -> Checked {
    let Some(story) = ledger.stories.get(&run) else { return Ok(()) };
    let last = story.attempts.range((scheduled, 0)..=(scheduled, u32::MAX)).next_back();
    if last == Some(&(scheduled, start)) {
        return Ok(());
    }
    let what =
        format!("activity {scheduled}: the result of start {start} was taken after {last:?}");
    Err(Violation::of(Check::Activities, run, what))
}
