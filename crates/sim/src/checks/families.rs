//! Relations between runs, once everything has settled: parents and children agree, closed parents
//! applied their close policies, and effects took place once.

use std::collections::BTreeMap;

use abide_core::{
    effect::{Action, RunOutcome},
    event::{ChildInitiated, ChildSpec, Fact, ParentClosePolicy, RunReference},
    failure::{Failure, TimeoutKind},
    ids::{EventNumber, RunId, WorkflowKey},
    retry::{RetryDecision, RetryState},
};

use super::{
    Check, Checked, Violation, chains, course,
    ledger::{Ledger, Story},
};

/// Reason that a run gives when it ends its children, or asks them to end.
const PARENT_CLOSED: &str = "the parent closed";

/// Every parent has recorded what happened to each of its children.
pub fn parents_and_children_agree(ledger: &Ledger) -> Checked {
    ledger.stories.values().try_for_each(|parent| children_of(ledger, parent))
}

fn children_of(ledger: &Ledger, parent: &Story) -> Checked {
    for event in &parent.events {
        let Fact::ChildInitiated(initiated) = &event.body.fact else { continue };
        let news = news_of(parent, event.number);
        let chain: Vec<_> = chains::from(ledger, initiated.run).collect();
        let judged = if chain.iter().any(|story| story.deleted || story.run.copied > 0) {
            outcome_was_real(ledger, initiated.run, &news)
        } else if event.number <= taken_over(parent) {
            description_matches(parent, initiated, &chain, &news)
        } else {
            description_matches(parent, initiated, &chain, &news)
                .and_then(|()| left_as_agreed(parent, initiated, &chain, &news))
        };
        judged.map_err(|what| {
            let what = format!("child {}: {what}", event.number);
            Violation::of(Check::Families, parent.run.id, what)
        })?;
    }
    Ok(())
}

/// Children of events up to this one belong to several runs of the parent, because of a reset.
fn taken_over(parent: &Story) -> EventNumber {
    let to = parent.events.last().and_then(|event| match &event.body.fact {
        Fact::RunTerminated(end) => end.reset.as_ref().map(|reset| reset.copied),
        _ => None,
    });
    to.unwrap_or(0).max(parent.run.copied)
}

/// The parent has recorded the end of a run of a child that was reset or deleted.
fn outcome_was_real(ledger: &Ledger, first: RunId, news: &News) -> Result<(), &'static str> {
    let Some((run, _)) = &news.closed else { return Ok(()) };
    let ended = ledger.stories.get(run).filter(|story| !story.run.open());
    let mut before = std::iter::successors(ended, |story| course::before(ledger, story));
    match before.any(|story| story.run.id == first) {
        true => Ok(()),
        false => Err("the parent has recorded another run"),
    }
}

/// What a parent has recorded about a child.
#[derive(Default)]
struct News {
    started: bool,
    start_failed: bool,
    closed: Option<(RunId, RunOutcome)>,
}

/// The outcome of a child as its parent records it. Only the parent knows of the retries that it makes.
fn told(initiated: &ChildInitiated, outcome: &RunOutcome) -> RunOutcome {
    let ChildSpec { attempt, recorded_retry, .. } = &initiated.child;
    let Some(policy) = recorded_retry else { return outcome.clone() };
    let state = |failure: &Failure| match policy.judge((*attempt).max(1), failure) {
        RetryDecision::After(_) => RetryState::InProgress,
        RetryDecision::Stop(state) => state,
    };
    match outcome.clone() {
        RunOutcome::Failed { failure, .. } => {
            let retry_state = state(&failure);
            RunOutcome::Failed { failure, retry_state }
        }
        RunOutcome::TimedOut { .. } => {
            let retry_state = state(&Failure::timeout(TimeoutKind::StartToClose));
            RunOutcome::TimedOut { retry_state }
        }
        outcome @ (RunOutcome::Completed(_)
        | RunOutcome::Cancelled(_)
        | RunOutcome::Terminated { .. }) => outcome,
    }
}

fn description_matches(
    parent: &Story,
    initiated: &ChildInitiated,
    chain: &[&Story],
    news: &News,
) -> Result<(), &'static str> {
    let Some(child) = chain.last().map(|story| &story.run) else {
        return match news {
            News { closed: Some(_), .. } => Err("the parent has its close, but it never ran"),
            News { started: true, .. } => Err("the parent has its start only"),
            _ => Ok(()),
        };
    };
    match &news.closed {
        Some((run, _)) if child.id != *run => Err("the parent has recorded another run"),
        Some((_, outcome))
            if child.outcome.as_ref().map(|outcome| told(initiated, outcome)).as_ref()
                != Some(outcome) =>
        {
            Err("the parent has recorded another outcome")
        }
        None if news.start_failed => {
            Err("it runs, but the parent has recorded that it could not be started")
        }
        None if parent.run.open() && !child.open() => {
            Err("it is closed and the open parent does not know")
        }
        Some(_) | None => Ok(()),
    }
}

/// A closed parent applied its policy to the child, once, and only if the child was still open as
/// far as the parent knew.
fn left_as_agreed(
    parent: &Story,
    initiated: &ChildInitiated,
    chain: &[&Story],
    news: &News,
) -> Result<(), &'static str> {
    let Some(child) = chain.last().map(|story| &story.run) else { return Ok(()) };
    let asked = count(chain, |fact| {
        matches!(
            fact,
            Fact::RunCancelRequested(request) if request.reason == PARENT_CLOSED
                && request.source.as_ref().is_some_and(|source| source.run == parent.run.id)
        )
    });
    let ended = count(
        chain,
        |fact| matches!(fact, Fact::RunTerminated(end) if end.reason == PARENT_CLOSED),
    );
    let was_asked = count(chain, |fact| matches!(fact, Fact::RunCancelRequested(_))) > 0;
    let closed_first = !parent.run.open() && news.closed.is_none();
    match initiated.child.parent_close {
        _ if !closed_first && asked + ended > 0 => Err("it was ended by a parent that was open"),
        _ if asked + ended > 1 => Err("it was ended twice by its parent"),
        _ if !closed_first => Ok(()),
        ParentClosePolicy::Terminate if child.open() => {
            Err("it is open although its parent closed")
        }
        ParentClosePolicy::Terminate if asked > 0 => Err("it was asked to end, not terminated"),
        ParentClosePolicy::RequestCancel if child.open() && !was_asked => {
            Err("it was not asked to end although its parent closed")
        }
        ParentClosePolicy::RequestCancel if ended > 0 => Err("it was terminated, not asked to end"),
        ParentClosePolicy::Abandon if asked + ended > 0 => Err("it was ended, not left alone"),
        ParentClosePolicy::Terminate
        | ParentClosePolicy::RequestCancel
        | ParentClosePolicy::Abandon => Ok(()),
    }
}

fn count(chain: &[&Story], counts: impl Fn(&Fact) -> bool) -> usize {
    let events = chain.iter().flat_map(|story| &story.events);
    events.filter(|event| counts(&event.body.fact)).count()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others are no news of a child")]
fn news_of(parent: &Story, initiated: EventNumber) -> News {
    let mut news = News::default();
    for event in &parent.events {
        match &event.body.fact {
            Fact::ChildStarted(started) if started.initiated == initiated => news.started = true,
            Fact::ChildStartFailed(failed) if failed.initiated == initiated => {
                news.start_failed = true;
            }
            Fact::ChildCompleted(close) if close.initiated == initiated => {
                news.closed = Some((close.run, RunOutcome::Completed(close.result.clone())));
            }
            Fact::ChildFailed(close) if close.initiated == initiated => {
                let (failure, retry_state) = (close.failure.clone(), close.retry_state);
                news.closed = Some((close.run, RunOutcome::Failed { failure, retry_state }));
            }
            Fact::ChildTimedOut(close) if close.initiated == initiated => {
                let retry_state = close.retry_state;
                news.closed = Some((close.run, RunOutcome::TimedOut { retry_state }));
            }
            Fact::ChildCancelled(close) if close.initiated == initiated => {
                news.closed = Some((close.run, RunOutcome::Cancelled(close.details.clone())));
            }
            Fact::ChildTerminated(close) if close.initiated == initiated => {
                let reason = close.reason.clone();
                news.closed = Some((close.run, RunOutcome::Terminated { reason }));
            }
            _ => {}
        }
    }
    news
}

type Sent = (RunId, WorkflowKey, String);

/// As many signals arrived from a run as its history says were delivered.
pub fn effects_take_place_once(ledger: &Ledger) -> Checked {
    let mut delivered: BTreeMap<Sent, usize> = BTreeMap::new();
    let mut received: BTreeMap<Sent, usize> = BTreeMap::new();
    for story in ledger.stories.values() {
        for sent in signals_delivered(story) {
            *delivered.entry(sent).or_default() += 1;
        }
        for sent in signals_received(ledger, story) {
            *received.entry(sent).or_default() += 1;
        }
    }
    for sent in delivered.keys().chain(received.keys()) {
        let (left, arrived) = (delivered.get(sent), received.get(sent));
        if left != arrived {
            let (run, workflow, name) = sent;
            let what = format!(
                "signal {name} to {workflow}: {} delivered, {} arrived",
                left.unwrap_or(&0),
                arrived.unwrap_or(&0)
            );
            return Err(Violation::of(Check::Effects, *run, what));
        }
    }
    Ok(())
}

/// Signals to other workflows that the run knows to have arrived.
fn signals_delivered(story: &Story) -> Vec<Sent> {
    let mut sent = Vec::new();
    let told = |initiated: EventNumber| {
        story.events.iter().any(|event| {
            matches!(
                &event.body.fact,
                Fact::ExternalSignalDelivered(told) if told.initiated == initiated
            )
        })
    };
    // What was copied was sent by another run.
    for event in story.events.iter().filter(|event| event.number > story.run.copied) {
        if let Fact::ExternalSignalInitiated(initiated) = &event.body.fact {
            let settled = story.settled.get(&event.number).copied().unwrap_or_default();
            if settled || told(event.number) {
                let workflow = initiated.target.workflow.clone();
                sent.push((story.run.id, workflow, initiated.name.clone()));
            }
        }
    }
    sent
}

fn signals_received(ledger: &Ledger, story: &Story) -> Vec<Sent> {
    let mut received: Vec<Sent> = story
        .events
        .iter()
        .filter(|event| event.number > story.inherited)
        .filter_map(|event| match &event.body.fact {
            Fact::SignalReceived(signal) => {
                let RunReference { run, .. } = signal.source.clone()?;
                Some((run, story.run.workflow.clone(), signal.name.clone()))
            }
            _ => None,
        })
        .collect();
    if story.run.copied == 0 {
        let carried = carried_effects(ledger, story).min(received.len());
        received.drain(..carried);
    }
    received
}

/// How many of the run's first signals from other runs were carried over from the previous run.
fn carried_effects(ledger: &Ledger, story: &Story) -> usize {
    let Some(Fact::RunStarted(started)) = story.events.first().map(|event| &event.body.fact) else {
        return 0;
    };
    let Some(previous) = &started.previous else { return 0 };
    let Some(before) = ledger.stories.get(&previous.run) else { return 0 };
    let Some(Fact::RunContinuedAsNew(closed)) = before.events.last().map(|event| &event.body.fact)
    else {
        return 0;
    };
    let from_a_run = |number: &&EventNumber| {
        let index = usize::try_from(**number).unwrap_or_default().wrapping_sub(1);
        matches!(
            before.events.get(index).map(|event| &event.body.fact),
            Some(Fact::SignalReceived(signal)) if signal.source.is_some()
        )
    };
    closed.signals.iter().filter(from_a_run).count()
}

/// No effect is still in flight.
pub fn no_effect_is_in_flight(ledger: &Ledger) -> Checked {
    for story in ledger.stories.values() {
        if let Some((number, effect)) = story.run.outbox.first_key_value() {
            let kind = match &effect.action {
                Action::StartChild(_) => "start of a child",
                Action::Signal { .. } => "signal",
                Action::Cancel { .. } => "cancel",
                Action::ChildClosed(_) => "close of a child",
                Action::AdoptChild(_) => "adoption of a child",
            };
            let what = format!("effect {number}, {kind}, has no answer");
            return Err(Violation::of(Check::Liveness, story.run.id, what));
        }
    }
    Ok(())
}
