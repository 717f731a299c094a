//! Between runs, when everything has settled: parents and children agree, runs of a workflow are
//! chains with one current run, and effects took place once.

use std::collections::BTreeMap;

use abide_core::{
    effect::Action,
    event::{Fact, Initiator, ParentClosePolicy, RunReference},
    ids::{EventNumber, RunId, WorkflowKey},
    run::{Close, Run, Status},
};

use super::{
    Check, Checked, Violation,
    ledger::{Ledger, Story},
};

/// Every parent has of every child what the child has become.
pub fn parents_and_children_agree(ledger: &Ledger) -> Checked {
    ledger.stories.values().try_for_each(|parent| children_of(ledger, parent))
}

fn children_of(ledger: &Ledger, parent: &Story) -> Checked {
    for event in &parent.events {
        let Fact::ChildInitiated(initiated) = &event.body.fact else { continue };
        let news = news_of(parent, event.number);
        let child = last_of_chain(ledger, initiated.run);
        let wrong = |what: &str| {
            let what = format!("child {}: {what}", event.number);
            Err(Violation::of(Check::Families, parent.run.id, what))
        };
        match (child, news.closed) {
            (None, Some(_)) => return wrong("the parent has its close, but it never ran"),
            (None, None) if news.started => return wrong("the parent has its start only"),
            (Some(child), Some((run, how))) if child.id != run || close_of(child) != Some(how) => {
                return wrong("the parent has another close than the child");
            }
            (Some(_), None) if news.start_failed => {
                return wrong("it runs, but the parent was told that it could not be started");
            }
            (Some(child), None) if parent.run.open() && !child.open() => {
                return wrong("it is closed and the open parent does not know");
            }
            (Some(child), None)
                if !parent.run.open()
                    && child.open()
                    && initiated.child.parent_close == ParentClosePolicy::Terminate =>
            {
                return wrong("it is open although its parent closed");
            }
            _ => {}
        }
    }
    Ok(())
}

/// What a parent has heard of a child.
#[derive(Default)]
struct News {
    started: bool,
    start_failed: bool,
    closed: Option<(RunId, Close)>,
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
                news.closed = Some((close.run, Close::Completed));
            }
            Fact::ChildFailed(close) if close.initiated == initiated => {
                news.closed = Some((close.run, Close::Failed));
            }
            Fact::ChildTimedOut(close) if close.initiated == initiated => {
                news.closed = Some((close.run, Close::TimedOut));
            }
            Fact::ChildCancelled(close) if close.initiated == initiated => {
                news.closed = Some((close.run, Close::Cancelled));
            }
            Fact::ChildTerminated(close) if close.initiated == initiated => {
                news.closed = Some((close.run, Close::Terminated));
            }
            _ => {}
        }
    }
    news
}

/// The last run of the chain that begins with `run`.
fn last_of_chain(ledger: &Ledger, run: RunId) -> Option<&Run> {
    let mut run = &ledger.stories.get(&run)?.run;
    while let Status::Closed { next_run: Some(next), .. } = run.status {
        run = &ledger.stories.get(&next)?.run;
    }
    Some(run)
}

fn close_of(run: &Run) -> Option<Close> {
    match run.status {
        Status::Closed { how, .. } => Some(how),
        Status::Open => None,
    }
}

/// Ordinals are dense, only the last run may be open, and links agree in both directions.
pub fn runs_are_chains(ledger: &Ledger) -> Checked {
    for (workflow, runs) in &ledger.workflows {
        let mut stories: Vec<_> = ledger.of_workflow(workflow).collect();
        stories.sort_by_key(|story| story.run.ordinal);
        for (index, story) in stories.iter().enumerate() {
            let wrong = |what: String| Err(Violation::of(Check::Chains, story.run.id, what));
            let ordinal = u64::try_from(index + 1).unwrap_or_default();
            if story.run.ordinal != ordinal {
                return wrong(format!("ordinal {} instead of {ordinal}", story.run.ordinal));
            }
            let last = index + 1 == runs.len();
            if story.run.open() && !last {
                return wrong("open, but not the current run".into());
            }
            let next = stories.get(index + 1).map(|next| next.run.id);
            if let Status::Closed { next_run: Some(link), .. } = story.run.status
                && next != Some(link)
            {
                return wrong(format!("followed by {next:?} instead of {link}"));
            }
            link_back(story, index.checked_sub(1).and_then(|before| stories.get(before)))?;
        }
    }
    Ok(())
}

fn link_back(story: &Story, before: Option<&&Story>) -> Checked {
    let Some(Fact::RunStarted(started)) = story.events.first().map(|event| &event.body.fact) else {
        return Err(Violation::of(Check::Chains, story.run.id, "no RunStarted"));
    };
    let Some(previous) = &started.previous else { return Ok(()) };
    let linked = before.is_some_and(|before| {
        let next = matches!(
            before.run.status,
            Status::Closed { next_run: Some(next), .. } if next == story.run.id
        );
        before.run.id == previous.run && (next || previous.initiator == Initiator::Reset)
    });
    if linked {
        return Ok(());
    }
    Err(Violation::of(Check::Chains, story.run.id, "the run before does not lead to it"))
}

/// Source run, target workflow and signal name.
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
    let mut number = 0;
    let mut sent = Vec::new();
    let told = |initiated: EventNumber| {
        story.events.iter().any(|event| {
            matches!(
                &event.body.fact,
                Fact::ExternalSignalDelivered(told) if told.initiated == initiated
            )
        })
    };
    for event in &story.events {
        match &event.body.fact {
            Fact::ExternalSignalInitiated(initiated) => {
                number += 1;
                let settled = story.settled.get(&number).copied().unwrap_or_default();
                if settled || told(event.number) {
                    let workflow = initiated.target.workflow.clone();
                    sent.push((story.run.id, workflow, initiated.name.clone()));
                }
            }
            Fact::ChildInitiated(_) | Fact::ExternalCancelInitiated(_) => number += 1,
            _ => {}
        }
    }
    sent
}

fn signals_received(ledger: &Ledger, story: &Story) -> Vec<Sent> {
    let mut received: Vec<Sent> = story
        .events
        .iter()
        .filter_map(|event| match &event.body.fact {
            Fact::SignalReceived(signal) => {
                let RunReference { run, .. } = signal.source.clone()?;
                Some((run, story.run.workflow.clone(), signal.name.clone()))
            }
            _ => None,
        })
        .collect();
    let carried = carried_effects(ledger, story).min(received.len());
    received.drain(..carried);
    received
}

/// How many of the run's first signals of other runs came over from the run before.
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

/// No effect is still on its way.
pub fn nothing_is_on_its_way(ledger: &Ledger) -> Checked {
    for story in ledger.stories.values() {
        if let Some((number, effect)) = story.run.outbox.first_key_value() {
            let kind = match &effect.action {
                Action::StartChild(_) => "start of a child",
                Action::Signal { .. } => "signal",
                Action::Cancel { .. } => "cancel",
                Action::ChildClosed(_) => "close of a child",
            };
            let what = format!("effect {number}, {kind}, has no answer");
            return Err(Violation::of(Check::Liveness, story.run.id, what));
        }
    }
    Ok(())
}
