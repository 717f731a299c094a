//! `abide workflow patches`.

use std::collections::BTreeMap;

use abide::client::HistoryEvent;
use abide_command::{Common, Failed, Table};
use abide_core::{
    event::{Event, Fact, MarkerKind},
    list::RunFilter,
};
use clap::Args;
use serde_json::json;

use super::{
    filter::{Filter, OPEN, count_runs},
    list::pages,
};

/// Show which patches runs follow, and which are safe to remove
#[derive(Args)]
#[command(after_help = "Reads the histories of open runs, or of those that --status selects.
A run without the patch may have passed its call, or may not have reached it yet: check with `abide replay`.

Example:
  abide workflow patches --type order")]
pub(crate) struct Patches {
    #[command(flatten)]
    filter: Filter,
    /// Maximum number of runs to read, newest first
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 1_000)]
    limit: usize,
}

/// Numbers of runs by their state towards a patch.
#[derive(Debug, Default, PartialEq, Eq)]
struct PatchStanding {
    patched: usize,
    deprecated: usize,
}

impl Patches {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let (client, output) = (common.client().await?, common.output());
        let mut filter = RunFilter::from(self.filter);
        if filter.statuses.is_empty() {
            filter.statuses = OPEN.into();
        }
        let of = count_runs(&client, filter.clone()).await?;
        let rows = pages(&client, filter, self.limit).await?;
        let mut patches: BTreeMap<String, PatchStanding> = BTreeMap::new();
        for row in &rows {
            let handle = client.handle_untyped(row.workflow.clone()).run(row.run);
            count(&HistoryEvent::all_recorded(handle.history().await?), &mut patches);
        }
        let runs = rows.len();
        if output.json() {
            return patches.iter().try_for_each(|(patch, standing)| {
                output.object(&json!({
                    "patch": patch, "runs": runs, "without": standing.without(runs),
                    "patched": standing.patched, "deprecated": standing.deprecated,
                }))
            });
        }
        output.line(format_args!("read {runs} of {of} runs"))?;
        if patches.is_empty() {
            return Ok(());
        }
        let mut table = Table::new(["patch", "without", "patched", "deprecated", "next"]);
        for (patch, standing) in patches {
            let next = standing.next(runs).to_owned();
            let counts = [standing.without(runs), standing.patched, standing.deprecated];
            let [without, patched, deprecated] = counts.map(|count| count.to_string());
            table.row([patch, without, patched, deprecated, next]);
        }
        output.lines(table)
    }
}

/// Adds what one run's history records.
fn count(history: &[Event], patches: &mut BTreeMap<String, PatchStanding>) {
    for event in history {
        if let Fact::MarkerRecorded(recorded) = &event.body.fact
            && recorded.marker.kind == MarkerKind::Version
        {
            let standing = patches.entry(recorded.marker.id.clone()).or_default();
            match recorded.marker.is_optional_on_replay() {
                true => standing.deprecated += 1,
                false => standing.patched += 1,
            }
        }
    }
}

impl PatchStanding {
    const fn without(&self, runs: usize) -> usize {
        runs.saturating_sub(self.patched).saturating_sub(self.deprecated)
    }

    /// What may be done to the code, as far as these runs are concerned.
    const fn next(&self, runs: usize) -> &'static str {
        match (self.without(runs), self.patched) {
            (0, 0) => "remove it",
            (0, _) => "deprecate it",
            _ => "keep both paths",
        }
    }
}

#[cfg(test)]
mod tests {
    use abide_core::{
        event::{Body, Marker, MarkerRecorded},
        time::Timestamp,
    };

    use super::*;

    fn remembers(change: &str, deprecated: bool) -> Event {
        let part = deprecated.then(|| (Marker::DEPRECATED.to_owned(), Vec::new()));
        let marker = Marker {
            kind: MarkerKind::Version,
            id: change.into(),
            details: part.into_iter().collect(),
            failure: None,
            header: Default::default(),
        };
        let fact = Fact::MarkerRecorded(MarkerRecorded { marker, task_completed: 4 });
        Event { number: 5, time: Timestamp::EPOCH, body: Body::new(fact) }
    }

    #[test]
    fn runs_are_counted_by_what_they_remember() {
        let mut patches = BTreeMap::new();
        count(&[remembers("ask", false), remembers("tell", true)], &mut patches);
        count(&[remembers("ask", true)], &mut patches);
        assert_eq!(patches["ask"], PatchStanding { patched: 1, deprecated: 1 });
        assert_eq!(patches["tell"], PatchStanding { patched: 0, deprecated: 1 });
    }

    #[test]
    fn a_patch_goes_when_no_run_needs_it() {
        let next = |patched, deprecated| PatchStanding { patched, deprecated }.next(3);
        assert_eq!(next(1, 1), "keep both paths");
        assert_eq!(next(1, 2), "deprecate it");
        assert_eq!(next(0, 3), "remove it");
    }
}
