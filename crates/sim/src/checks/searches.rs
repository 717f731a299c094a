//! Searches by attributes find the runs whose history sets them, and no others.

use std::{collections::BTreeSet, sync::Arc};

use abide_core::{
    event::{Event, Fact},
    ids::RunId,
    payload::Payload,
    search::Query,
};
use abide_store::{RunFilter, memory::Tables};

use super::{Check, Checked, Violation, ledger::Ledger};
use crate::attributes::{STAGE, STAGE_VALUES, TAG_VALUES, TAGS, definitions};

pub fn find_what_was_set(ledger: &Ledger, tables: &Tables) -> Checked {
    for stage in STAGE_VALUES {
        let is = |payload: &Payload| payload.data == stage.to_string();
        compare(ledger, tables, &format!("Stage = {stage}"), |events| {
            last(events, STAGE.name()).is_some_and(is)
        })?;
    }
    for tag in TAG_VALUES {
        // The texts are plain, so they stand in JSON as they are.
        let text = format!("\"{tag}\"");
        let has = |payload: &Payload| {
            payload.data.windows(text.len()).any(|part| part == text.as_bytes())
        };
        compare(ledger, tables, &format!("Tags = '{tag}'"), |events| {
            last(events, TAGS.name()).is_some_and(has)
        })?;
    }
    compare(ledger, tables, "Stage IS NULL", |events| last(events, STAGE.name()).is_none())
}

fn compare(
    ledger: &Ledger,
    tables: &Tables,
    text: &str,
    holds: impl Fn(&[Event]) -> bool,
) -> Checked {
    let query = Query::parse(text, &definitions())
        .map_err(|error| Violation::new(Check::Searches, format!("{text}: {error}")))?;
    let filter = RunFilter { search: Some(Arc::new(query)), ..RunFilter::default() };
    let found: BTreeSet<RunId> =
        tables.runs(&filter, usize::MAX).iter().map(|row| row.run).collect();
    for (run, story) in &ledger.stories {
        if found.contains(run) != (!story.deleted && holds(&story.events)) {
            let what = if found.contains(run) { "finds" } else { "does not find" };
            return Err(Violation::of(Check::Searches, *run, format!("{text} {what} the run")));
        }
    }
    Ok(())
}

/// The value that a history leaves, if it is not removed.
fn last<'a>(events: &'a [Event], name: &str) -> Option<&'a Payload> {
    let changes = events.iter().filter_map(|event| {
        #[expect(clippy::wildcard_enum_match_arm, reason = "others change no attributes")]
        match &event.body.fact {
            Fact::RunStarted(start) => start.spec.search_attributes.get(name),
            Fact::SearchAttributesUpserted(upserted) => upserted.attributes.get(name),
            _ => None,
        }
    });
    changes.last().filter(|payload| !payload.data.is_empty())
}
