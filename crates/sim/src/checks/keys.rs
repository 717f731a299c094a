//! Keys of requests: a request that repeats an earlier one with the same key and content is done, and one
//! that reuses the key for other content is refused, never taken for the earlier one.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    event::{Fact, SignalReceived, UpdateRequest},
    ids::{RunId, UpdateId, WorkflowKey},
    operation::{RunOperation, Signal, Start, Update},
    payload::Payloads,
    run::Stage,
};

use super::{Check, Checked, Violation, ledger::Ledger};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Signal,
    Update,
    Start,
}

type Name = (Kind, WorkflowKey, String);

/// What clients have asked for with each key.
#[derive(Debug, Default)]
pub struct Uses {
    asked: BTreeMap<Name, BTreeSet<String>>,
}

impl Uses {
    /// A client sends a request.
    pub fn asks(&mut self, asked: &RunOperation) {
        for (name, content) in uses(asked) {
            self.asked.entry(name).or_default().insert(content);
        }
    }

    /// A request was refused because its key had been used for another: there is another.
    pub fn refused(&self, asked: &RunOperation, key: &str) -> Checked {
        let others = |(name, _): &(Name, String)| {
            name.2 == key && self.asked.get(name).is_some_and(|contents| contents.len() > 1)
        };
        if uses(asked).iter().any(others) {
            return Ok(());
        }
        let what = format!("{key} is refused as reused, but all requests with it are the same");
        Err(Violation::new(Check::Keys, what))
    }
}

/// An update that is acknowledged is the one that was asked for.
pub fn update_is_the_one(
    ledger: &Ledger,
    (run, stage): (RunId, &Stage),
    update: &UpdateId,
    request: &UpdateRequest,
) -> Checked {
    let Some(story) = ledger.stories.get(&run) else { return Ok(()) };
    if !matches!(stage, Stage::Accepted | Stage::Completed(_)) {
        return Ok(());
    }
    let taken = story.events.iter().find_map(|event| match &event.body.fact {
        Fact::UpdateAccepted(accepted) if accepted.update == *update => Some(&accepted.request),
        _ => None,
    });
    match taken.filter(|taken| {
        content(&taken.name, &taken.input) != content(&request.name, &request.input)
    }) {
        Some(taken) => {
            let what =
                format!("update {update} is acknowledged, but {:?} was accepted", taken.input);
            Err(Violation::of(Check::Keys, run, what))
        }
        None => Ok(()),
    }
}

/// A start that is acknowledged is the one that was asked for.
pub fn start_is_the_one(ledger: &Ledger, run: RunId, start: &Start) -> Checked {
    let Some(story) = ledger.stories.get(&run) else { return Ok(()) };
    let (is, asked) = (&story.run.spec, &start.spec);
    if (&is.workflow_type, &is.input) == (&asked.workflow_type, &asked.input) {
        return Ok(());
    }
    let what =
        format!("it is acknowledged as a {}, and is a {}", asked.workflow_type, is.workflow_type);
    Err(Violation::of(Check::Keys, run, what))
}

/// The keys of a request, each with its content.
fn uses(asked: &RunOperation) -> Vec<(Name, String)> {
    match asked {
        RunOperation::Signal(Signal { target, signal, .. }) => {
            of_signal(&target.workflow, signal).into_iter().collect()
        }
        RunOperation::Update(Update { target, update, request, .. }) => {
            vec![of_update(&target.workflow, update, request)]
        }
        RunOperation::Start(start) => of_start(start),
        _ => Vec::new(),
    }
}

fn of_signal(workflow: &WorkflowKey, signal: &SignalReceived) -> Option<(Name, String)> {
    let key = signal.key.as_ref()?;
    let name = (Kind::Signal, workflow.clone(), key.to_string());
    Some((name, content(&signal.name, &signal.input)))
}

fn of_update(workflow: &WorkflowKey, update: &UpdateId, request: &UpdateRequest) -> (Name, String) {
    let name = (Kind::Update, workflow.clone(), update.to_string());
    (name, content(&request.name, &request.input))
}

fn of_start(start: &Start) -> Vec<(Name, String)> {
    let signal = start.signal.as_ref().and_then(|signal| of_signal(&start.workflow, signal));
    let update = start.update.as_ref();
    let update = update.map(|asked| of_update(&start.workflow, &asked.update, &asked.request));
    let own = start.key.as_ref().map(|key| {
        let spec = content(&start.spec.workflow_type, &start.spec.input);
        let signal = signal.as_ref().map(|(_, signal)| signal);
        ((Kind::Start, start.workflow.clone(), key.to_string()), format!("{spec} {signal:?}"))
    });
    own.into_iter().chain(signal).chain(update).collect()
}

fn content(name: &str, input: &Payloads) -> String {
    format!("{name} {:?}", input.iter().map(|payload| &payload.data).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use abide_core::{
        operation::{RunTarget, UpdateWait},
        payload::Payload,
    };

    use super::*;
    use crate::names::key;

    fn update(text: &str) -> RunOperation {
        let target = RunTarget { workflow: key("root"), run: None };
        let input = vec![Payload::new(text.to_owned())];
        let request = UpdateRequest { name: "vote".into(), input, ..UpdateRequest::default() };
        let (update, until) = ("u".into(), UpdateWait::Completed);
        Update { target, update, request, until, wait_while_blocked: true }.into()
    }

    #[test]
    fn only_a_reused_key_is_refused() {
        let mut uses = Uses::default();
        uses.asks(&update("yes"));
        uses.asks(&update("yes"));
        assert!(uses.refused(&update("yes"), "u").is_err(), "it is a repeat");
        uses.asks(&update("no"));
        assert!(uses.refused(&update("no"), "u").is_ok());
        assert!(uses.refused(&update("no"), "other").is_err());
    }
}
