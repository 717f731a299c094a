//! Several of the same at once: they begin in their order, and never more than allowed are under way.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    event::{Event, Fact},
    ids::EventNumber,
};

use super::{Check, Checked, Violation, ledger::Story, records::activity_end};
use crate::code::CROWD;

/// Those of a crowd that are under way, and the last that began.
#[derive(Debug, Default)]
struct Under {
    way: BTreeSet<EventNumber>,
    last: usize,
}

/// Judges the crowds of a run by its history.
pub fn crowds_keep_their_bounds(story: &Story) -> Checked {
    let mut crowds: BTreeMap<usize, Under> = BTreeMap::new();
    // What a request cancels may be under way a little longer, beside what code begins after it.
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
            return wrong(format!("{count} of crowd {number} are under way, {bound} are allowed"));
        }
        if index < crowd.last {
            return wrong(format!("crowd {number}: {index} begins after {}", crowd.last));
        }
        crowd.last = index;
    }
    Ok(())
}

/// A member that begins: its crowd, its place and how many may be under way. Recorded retries begin
/// again, while others may have begun.
fn member(event: &Event) -> Option<(usize, usize, usize)> {
    let Fact::ActivityScheduled(scheduled) = &event.body.fact else { return None };
    if scheduled.spec.retry_of.is_some() {
        return None;
    }
    let text = std::str::from_utf8(&scheduled.spec.input.first()?.data).ok()?;
    let mut parts = text.strip_prefix(CROWD)?.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}
