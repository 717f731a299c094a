//! Namespaces: a command of a run reaches another namespace only if that accepts it, and then it is not
//! refused.

use std::collections::BTreeSet;

use abide_core::{
    event::{DeliveryFailure, Fact, RunReference},
    ids::{EventNumber, NamespaceId},
};
use abide_shard::borders::Borders;

use super::{
    Check, Checked, Violation,
    ledger::{Ledger, Story},
};
use crate::{names::NAMESPACES, rng::Rng};

/// Which namespaces accept commands of which others: source, target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted(BTreeSet<(NamespaceId, NamespaceId)>);

impl Accepted {
    /// Each namespace may accept commands of the other.
    pub fn draw(rng: &mut Rng) -> Self {
        Self(Self::all().0.into_iter().filter(|_| rng.chance(500)).collect())
    }

    /// Every namespace accepts commands of every other.
    pub fn all() -> Self {
        let [near, far] = NAMESPACES.map(NamespaceId::from);
        Self(BTreeSet::from([(near.clone(), far.clone()), (far, near)]))
    }

    /// The same as the configuration of a shard.
    pub fn configured(&self) -> Borders {
        let mut borders = Borders::default();
        for (from, into) in &self.0 {
            borders.accept(into.clone(), from.clone());
        }
        borders
    }

    fn admit(&self, from: &NamespaceId, into: &NamespaceId) -> bool {
        from == into || self.0.contains(&(from.clone(), into.clone()))
    }
}

/// All commands between namespaces went as these accept them.
pub fn commands_stay_within(ledger: &Ledger, accepted: &Accepted) -> Checked {
    for story in ledger.stories.values() {
        for event in &story.events {
            let own = &story.run.workflow.namespace;
            let crossed = source(&event.body.fact)
                .filter(|source| !accepted.admit(&source.workflow.namespace, own));
            if let Some(source) = crossed {
                let (number, name) = (event.number, event.body.fact.name());
                let what = format!("event {number} {name} is of {}, a stranger", source.workflow);
                return Err(Violation::of(Check::Borders, story.run.id, what));
            }
            refusal_is_right(story, &event.body.fact, accepted)?;
        }
    }
    Ok(())
}

/// The run whose command led to the event.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others name no other run")]
fn source(fact: &Fact) -> Option<&RunReference> {
    match fact {
        Fact::RunStarted(started) => started.parent.as_ref().map(|parent| &parent.run),
        Fact::SignalReceived(signal) => signal.source.as_ref(),
        Fact::RunCancelRequested(request) => request.source.as_ref(),
        _ => None,
    }
}

/// A command is refused at a border only if the target does not accept it.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others are no refusal at a border")]
fn refusal_is_right(story: &Story, fact: &Fact, accepted: &Accepted) -> Checked {
    let (initiated, cause) = match fact {
        Fact::ChildStartFailed(failed) => (failed.initiated, failed.cause),
        Fact::ExternalSignalFailed(failed) => (failed.initiated, failed.cause),
        Fact::ExternalCancelFailed(failed) => (failed.initiated, failed.cause),
        _ => return Ok(()),
    };
    if cause != DeliveryFailure::NamespaceRefused {
        return Ok(());
    }
    let own = &story.run.workflow.namespace;
    match target(story, initiated).filter(|into| accepted.admit(own, into)) {
        Some(into) => {
            let what =
                format!("the command of event {initiated} is refused, but {into} accepts it");
            Err(Violation::of(Check::Borders, story.run.id, what))
        }
        None => Ok(()),
    }
}

/// The namespace that a command is meant for.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others are no command to another workflow")]
fn target(story: &Story, initiated: EventNumber) -> Option<&NamespaceId> {
    let index = usize::try_from(initiated).ok()?.checked_sub(1)?;
    let workflow = match &story.events.get(index)?.body.fact {
        Fact::ChildInitiated(initiated) => &initiated.child.workflow,
        Fact::ExternalSignalInitiated(initiated) => &initiated.target.workflow,
        Fact::ExternalCancelInitiated(initiated) => &initiated.target.workflow,
        _ => return None,
    };
    Some(&workflow.namespace)
}
