//! No reply is stale: a caller learns at least what was committed when it asked, whichever node
//! replies.

use abide_core::{
    ids::{EventNumber, RunId},
    operation::{
        AnyAnswer, AwaitClose, AwaitEvents, CallError, Closed, Describe, Events, Query,
        RunOperation, RunTarget,
    },
};

use super::{
    Check, Checked, Violation,
    ledger::{Ledger, Story},
};

/// What was committed of a run when a caller asked for it.
#[derive(Clone, Copy, Debug)]
pub struct Floor {
    run: RunId,
    ordinal: u64,
    log_rows: u64,
    last_event: EventNumber,
}

/// How much of a run a reply shows.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    log_rows: Option<u64>,
    last_event: Option<EventNumber>,
}

impl Floor {
    /// The committed state of the run that the call reads, if it is a read.
    pub fn of(ledger: &Ledger, asked: &RunOperation) -> Option<Self> {
        let story = story(ledger, target(asked)?)?;
        let run = &story.run;
        let (log_rows, last_event) = (run.log_rows, run.last_event);
        Some(Self { run: run.id, ordinal: run.ordinal, log_rows, last_event })
    }

    /// Checks that the reply shows at least that. `queried`: the last event that the answer of a
    /// query is based on.
    pub fn holds(
        &self,
        ledger: &Ledger,
        answer: &Result<AnyAnswer, CallError>,
        queried: Option<(RunId, EventNumber)>,
    ) -> Checked {
        let (run, shown) = match answer {
            Ok(AnyAnswer::Description(shown)) => {
                let log_rows = ledger.stories.get(&shown.run).and_then(|story| story.shows(shown));
                (shown.run, Shown { log_rows, last_event: Some(shown.last_event) })
            }
            Ok(AnyAnswer::Events(Events { run, last_event, .. })) => {
                (*run, Shown { last_event: Some(*last_event), ..Shown::default() })
            }
            Ok(AnyAnswer::Closed(Closed { run, .. })) => (*run, Shown::default()),
            Ok(_) => match queried {
                Some((run, last_event)) => {
                    (run, Shown { last_event: Some(last_event), ..Shown::default() })
                }
                None => return Ok(()),
            },
            Err(CallError::NotFound) if !self.may_be_gone(ledger) => {
                return Err(self.broken(self.run, "it is said not to exist".into()));
            }
            Err(_) => return Ok(()),
        };
        self.reached(ledger, run, shown)
    }

    /// Whether the run was deleted, or one that followed it, with which a query may have waited.
    fn may_be_gone(&self, ledger: &Ledger) -> bool {
        let own = ledger.stories.get(&self.run).map(|story| &story.run.workflow);
        let follows =
            |story: &Story| Some(&story.run.workflow) == own && story.run.ordinal >= self.ordinal;
        ledger.stories.values().any(|story| story.deleted && follows(story))
    }

    fn reached(&self, ledger: &Ledger, run: RunId, shown: Shown) -> Checked {
        if run != self.run {
            let ordinal = ledger.stories.get(&run).map_or(0, |story| story.run.ordinal);
            let deleted = ledger.stories.get(&self.run).is_some_and(|story| story.deleted);
            if ordinal < self.ordinal && !deleted {
                return Err(self.broken(run, format!("run {} had followed it", self.run)));
            }
            return Ok(());
        }
        if shown.log_rows.is_some_and(|rows| rows < self.log_rows) {
            let what = format!("{:?} rows are shown, {} were committed", shown, self.log_rows);
            return Err(self.broken(run, what));
        }
        if shown.last_event.is_some_and(|event| event < self.last_event) {
            let what = format!("{:?} is shown, event {} was committed", shown, self.last_event);
            return Err(self.broken(run, what));
        }
        Ok(())
    }

    fn broken(&self, run: RunId, what: String) -> Violation {
        Violation::of(Check::Reads, run, format!("when it was asked for: {what}"))
    }
}

fn target(asked: &RunOperation) -> Option<&RunTarget> {
    match asked {
        RunOperation::Describe(Describe { target })
        | RunOperation::AwaitClose(AwaitClose { target })
        | RunOperation::AwaitEvents(AwaitEvents { target, .. })
        | RunOperation::Query(Query { target, .. }) => Some(target),
        _ => None,
    }
}

fn story<'a>(ledger: &'a Ledger, target: &RunTarget) -> Option<&'a Story> {
    match target.run {
        Some(run) => ledger.stories.get(&run),
        None => ledger.current(&target.workflow),
    }
}
