//! The invariants at the end: each acknowledged call has exactly one effect in the history, each
//! timer fired once, no activity ran again after its result was recorded, and an at-most-once
//! activity ran at most once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    io,
};

use abide::client::HistoryEvent;
use abide::{
    Client,
    list::{RunFilter, RunStatus},
};
use abide_core::{
    event::{Delivery, Event, Fact},
    time::Timestamp,
};

use crate::{
    deadlines::check_timers,
    journey::{Entry, detour_of},
    traveller::Journeyed,
};

/// A violated invariant, and the workflow or process that it concerns.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {what}")]
pub(crate) struct Finding {
    place: String,
    what: String,
}

impl Finding {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }

    /// A finding if the two differ.
    pub(crate) fn check<T: PartialEq + Debug>(
        place: &str,
        what: &str,
        expected: T,
        found: T,
    ) -> Result<(), Self> {
        if expected == found {
            return Ok(());
        }
        Err(Self::new(place, format!("{what}: expected {expected:?}, found {found:?}")))
    }
}

/// Turns an error of the operating system into a finding.
pub(crate) fn unable(what: &'static str) -> impl Fn(io::Error) -> Finding {
    move |error| Finding::new("processes", format!("cannot {what}: {error}"))
}

/// Checks every history and the ledger of attempts; `others` are the ids of runs that are not
/// journeys. Returns how many attempts were repeats.
pub(crate) async fn everything(
    client: &Client,
    journeys: &[Journeyed],
    others: &[String],
    ledger: &[Entry],
) -> Result<usize, Finding> {
    let mut recorded = Recorded::default();
    for journeyed in journeys {
        let id = journeyed.plan.id.as_str();
        let history = history(client, id).await?;
        check_history(journeyed, &history)?;
        recorded.add(id, &history)?;
        let child = detour_of(id);
        recorded.add(&child, &self::history(client, &child).await?)?;
    }
    for id in others {
        recorded.add(id, &history(client, id).await?)?;
    }
    let repeated = check_attempts(&recorded, ledger)?;
    check_count(client, 2 * journeys.len() + others.len()).await?;
    Ok(repeated)
}

async fn history(client: &Client, id: &str) -> Result<Vec<Event>, Finding> {
    let history = client.handle_untyped(id).history().await;
    history.map(HistoryEvent::all_recorded).map_err(|error| Finding::new(id, error.to_string()))
}

/// Checks that there is one run per start, and that all of them completed.
async fn check_count(client: &Client, expected: usize) -> Result<(), Finding> {
    for filter in [RunFilter::new(), RunFilter::new().status(RunStatus::Completed)] {
        let count = client.count_runs(filter).await;
        let count = count.map_err(|error| Finding::new("the count of runs", error.to_string()))?;
        Finding::check("all runs", "their number", expected, usize::try_from(count).unwrap_or(0))?;
    }
    Ok(())
}

/// Checks that every acknowledged call is in the history exactly once.
fn check_history(journeyed: &Journeyed, history: &[Event]) -> Result<(), Finding> {
    let id = journeyed.plan.id.as_str();
    let mut keys = Vec::new();
    let mut updates = Vec::new();
    for event in history {
        match &event.body.fact {
            Fact::SignalReceived(signal) => {
                keys.extend(signal.key.as_ref().map(|key| key.as_str().to_owned()));
            }
            Fact::UpdateCompleted(completed) => updates.push(completed.update.as_str().to_owned()),
            _ => {}
        }
    }
    keys.sort_unstable();
    updates.sort_unstable();
    let expected: Vec<_> = journeyed.keys.iter().cloned().collect();
    Finding::check(id, "signals in history", expected, keys)?;
    let expected: Vec<_> = journeyed.updates.iter().cloned().collect();
    Finding::check(id, "updates in history", expected, updates)
}

/// What the histories record about activities, by execution id.
#[derive(Default)]
struct Recorded {
    /// When the result was recorded.
    completed: BTreeMap<String, Timestamp>,
    /// Activities that run at most once.
    once: BTreeSet<String>,
}

impl Recorded {
    /// Adds the activities of a history. Each must have completed once, unless it runs at most
    /// once: that one may have been lost. Its timers must have fired once.
    fn add(&mut self, id: &str, history: &[Event]) -> Result<(), Finding> {
        check_timers(id, history)?;
        let mut scheduled = BTreeMap::new();
        for (event, number) in history.iter().zip(1..) {
            Finding::check(id, "the number of an event", number, event.number)?;
            match &event.body.fact {
                Fact::ActivityScheduled(activity) => {
                    let execution = activity.execution.to_string();
                    if activity.spec.delivery == Delivery::AtMostOnce {
                        self.once.insert(execution.clone());
                    }
                    scheduled.insert(event.number, execution);
                }
                Fact::ActivityCompleted(completed) => {
                    let Some(execution) = scheduled.remove(&completed.scheduled) else {
                        return Err(Finding::new(id, "an activity completed twice"));
                    };
                    self.completed.insert(execution, event.time);
                }
                _ => {}
            }
        }
        match scheduled.values().filter(|execution| !self.once.contains(*execution)).count() {
            0 => Ok(()),
            open => Err(Finding::new(id, format!("{open} activities never completed"))),
        }
    }
}

/// Checks that each recorded result comes from an attempt, that no attempt was handed out after its
/// result was recorded, and that an at-most-once activity has at most one attempt. Returns how many
/// attempts were repeats.
fn check_attempts(recorded: &Recorded, ledger: &[Entry]) -> Result<usize, Finding> {
    let mut attempts: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for entry in ledger {
        attempts.entry(entry.execution.as_str()).or_default().push(entry);
    }
    for (execution, completed_at) in &recorded.completed {
        let Some(attempts) = attempts.get(execution.as_str()) else {
            return Err(Finding::new(execution.as_str(), "has a result but never ran"));
        };
        check_late(attempts, completed_at.unix_millis())?;
    }
    for execution in &recorded.once {
        let attempts = attempts.get(execution.as_str()).map_or(0, Vec::len);
        if attempts > 1 {
            let what = format!("ran {attempts} times, and may run once");
            return Err(Finding::new(execution.as_str(), what));
        }
    }
    Ok(ledger.len() - attempts.len())
}

/// An attempt that began after the result was recorded must have been in flight that long, with a
/// node that was frozen. It was given up by then, and the result is that of a later attempt.
fn check_late(attempts: &[&Entry], completed_ms: u64) -> Result<(), Finding> {
    let in_time = attempts.iter().filter(|attempt| attempt.began_ms <= completed_ms);
    let last_start = in_time.map(|attempt| attempt.start).max().unwrap_or(0);
    let late = attempts.iter().filter(|attempt| attempt.began_ms > completed_ms);
    match late.into_iter().find(|attempt| attempt.start >= last_start) {
        None => Ok(()),
        Some(attempt) => {
            let late = attempt.began_ms - completed_ms;
            let what = format!("ran again {late} ms after its result was recorded");
            Err(Finding::new(attempt.errand.as_str(), what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(start: u32, began_ms: u64) -> Entry {
        Entry { execution: "e".into(), errand: "errand".into(), start, began_ms }
    }

    #[test]
    fn only_an_attempt_that_was_given_up_before_may_begin_after_the_result() {
        let check = |attempts: &[Entry]| check_late(&attempts.iter().collect::<Vec<_>>(), 100);
        check(&[attempt(1, 10), attempt(2, 20)]).unwrap();
        check(&[attempt(2, 10), attempt(1, 150)]).unwrap();
        let found = check(&[attempt(1, 10), attempt(2, 150)]).unwrap_err();
        assert_eq!(found.to_string(), "errand: ran again 50 ms after its result was recorded");
        check(&[attempt(1, 150)]).unwrap_err();
    }
}
