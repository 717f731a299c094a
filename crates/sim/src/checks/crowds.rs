//! Bounded concurrency: activities start in order, and never more than allowed are in flight.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    event::{Event, Fact},
    ids::EventNumber,
};

use super::{Check, Checked, Violation, ledger::Story, records::activity_end};
use crate::code::CROWD;

/// Members of a crowd that are in flight, and the last that started.
#[derive(Debug, Default)]
struct Under {
    way: BTreeSet<EventNumber>,
    last: usize,
}

/// Checks the crowds of a run against its history.
pub fn crowds_keep_their_bounds(story: &Story) -> Checked {
    let mut crowds: BTreeMap<usize, Under> = BTreeMap::new();
    // Members that a request cancels may be in flight a little longer, beside those that code
    // starts after it.
    let before = |event: &&Event| !matches!(event.body.fact, Fact::RunCancelRequested(_));
    for event in story.events.iter().take_while(before) {
        if let Some((ended, _)) = activity_end(&event.body.fact) {
            crowds.values_mut().for_each(|crowd| crowd.way.retain(|member| *member != ended));
        }
        let Some((number, index, bound)) = member(event) else { continue };
        let crowd = crowds.entry(number).or_default();
        crowd.way.insert(event.number);
        let wrong = |what: String| Err(Violation::of(Check::Crowds, story.run.id, what));
        if crowd.way.len() > bound {
            let count = crowd.way.len();
            return wrong(format!("{count} of crowd {number} are in flight, {bound} are allowed"));
        }
        if index < crowd.last {
            return wrong(format!("crowd {number}: {index} begins after {}", crowd.last));
        }
        crowd.last = index;
    }
    Ok(())
}

/// A member that starts: its crowd, its index and the bound. Recorded retries start again, when
/// later members may have started.
fn member(event: &Event) -> Option<(usize, usize, usize)> {
    let Fact::ActivityScheduled(scheduled) = &event.body.fact else { return None };
    if scheduled.spec.retry_of.is_some() {
        return None;
    }
    let text = std::str::from_utf8(&scheduled.spec.input.first()?.data).ok()?;
    let mut parts = text.strip_prefix(CROWD)?.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}
