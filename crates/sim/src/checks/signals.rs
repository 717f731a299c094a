//! Signals reach code: each is read at most once, those of one name in order; a run that continues
//! in another carries over all unread ones; and no open run waits for a signal that has arrived.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    event::{Event, Fact, Origin, SignalReceived},
    ids::EventNumber,
};

use super::{Check, Checked, Violation, ledger::Story};
use crate::code::HANDLED_SIGNALS;

/// Checks a run against what its code, which has seen the whole history, reports about its steps.
pub fn signals_are_read_once(story: &Story, steps: &[String]) -> Checked {
    let mut unread = Vec::new();
    let mut read_at = BTreeMap::new();
    for (number, name, text) in story.events.iter().filter_map(kept) {
        let reads = |step: &str| step.split_once('=').is_some_and(|(_, read)| read == text);
        let mut places = (0..steps.len()).filter(|place| reads(&steps[*place]));
        let Some(place) = places.next() else {
            unread.push((number, name));
            continue;
        };
        if places.next().is_some() {
            return Err(wrong(story, format!("signal {number} was read twice")));
        }
        if read_at.insert(name, place).is_some_and(|before| before > place) {
            return Err(wrong(story, format!("signal {number} was read before an older one")));
        }
    }
    match story.events.last().map(|event| &event.body.fact) {
        Some(Fact::RunContinuedAsNew(next)) => {
            let carried: BTreeSet<_> = next.signals.iter().collect();
            match unread.iter().find(|(number, _)| !carried.contains(number)) {
                Some((number, _)) => Err(wrong(story, format!("signal {number} is left behind"))),
                None => Ok(()),
            }
        }
        _ if story.run.open() => no_wait_misses_a_signal(story, &unread),
        _ => Ok(()),
    }
}

fn no_wait_misses_a_signal(story: &Story, unread: &[(EventNumber, &str)]) -> Checked {
    for timer in story.run.timers.values() {
        if let Some(Origin::ExternalEvent { name }) = &timer.spec.origin
            && let Some((number, _)) = unread.iter().find(|(_, unread)| takes(name, unread))
        {
            let what = format!("timer {} waits, but signal {number} is there", timer.spec.timer);
            return Err(wrong(story, what));
        }
    }
    Ok(())
}

/// Whether a wait for signals of the first name accepts one of the second; an empty name accepts
/// any.
pub fn takes(wanted: &str, name: &str) -> bool {
    wanted.is_empty() || wanted == name
}

/// A signal that waits to be received: number, name and text. Without a text it cannot be tracked.
pub fn kept(event: &Event) -> Option<(EventNumber, &str, &str)> {
    let Fact::SignalReceived(SignalReceived { name, input, .. }) = &event.body.fact else {
        return None;
    };
    let text = input.first().and_then(|payload| std::str::from_utf8(&payload.data).ok())?;
    let handled = HANDLED_SIGNALS.contains(&name.as_str());
    (!handled && !text.is_empty()).then_some((event.number, name, text))
}

fn wrong(story: &Story, what: String) -> Violation {
    Violation::of(Check::Signals, story.run.id, what)
}
