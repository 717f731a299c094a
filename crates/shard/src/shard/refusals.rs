//! Batches that the store refuses, and the runs at fault. Refusals are remembered across resets,
//! because each of them causes one.

use std::collections::BTreeMap;

use abide_core::ids::RunId;

use crate::pipeline::Pipeline;

/// How often the store may refuse a run's writes before the run is set aside.
const REFUSALS_MAX: u32 = 2;

/// How many runs are remembered whose first writes the store refused once, to recognise a second
/// refusal. Only a child is retried under the same id; a start or a successor gets a new id each
/// time.
const UNSTARTED_MAX: usize = 1000;

/// After a refused batch, this many commits hold the writes of one message each, so that the next
/// refusal identifies the run at fault.
const ALONE_COMMITS: u32 = 100;

/// How often the store refused writes, by run.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// How often the store refused a batch with the writes of this run alone.
    stored: BTreeMap<RunId, u32>,
    /// How often the store refused the first writes of a run. Counted separately, because a stored
    /// run of the same id is not at fault.
    unstarted: BTreeMap<RunId, u32>,
    /// Number of commits that must succeed before messages share a batch again.
    alone_for: u32,
}

/// A run whose writes the store has refused too often.
pub(super) enum Rejected {
    /// The run is stored: it is set aside.
    Stored(RunId),
    /// The run never began.
    Unstarted(RunId),
}

impl Refusals {
    /// Whether each message gets a batch of its own.
    pub(super) fn alone(&self) -> bool {
        self.alone_for > 0
    }

    /// The commit in flight succeeded, so its runs are not at fault. Of a run that is set aside, it
    /// held no transition, but perhaps the answer to an effect: the run stays set aside.
    pub(super) fn committed(&mut self, pipeline: &Pipeline) {
        self.alone_for = self.alone_for.saturating_sub(1);
        for run in pipeline.runs_in_flight() {
            if !self.set_aside(run) {
                self.stored.remove(&run);
            }
            self.unstarted.remove(&run);
        }
    }

    /// The store refused the commit in flight. The run at fault is known only if a message was
    /// committed alone. Returns the runs that have now been refused too often.
    pub(super) fn refused(&mut self, pipeline: &Pipeline) -> Vec<Rejected> {
        let mut rejected = Vec::new();
        if self.alone() {
            for run in pipeline.runs_in_flight() {
                let begins = pipeline.begins(run);
                let counts = if begins { &mut self.unstarted } else { &mut self.stored };
                let refusals = counts.entry(run).or_default();
                *refusals += 1;
                if *refusals == REFUSALS_MAX {
                    let of = if begins { Rejected::Unstarted } else { Rejected::Stored };
                    rejected.push(of(run));
                }
            }
            // Ids grow with time, so this evicts the oldest, which is unlikely to be retried.
            while self.unstarted.len() > UNSTARTED_MAX {
                self.unstarted.pop_first();
            }
        }
        self.alone_for = ALONE_COMMITS;
        rejected
    }

    /// Whether the run is set aside: the store refused its writes too often.
    pub(super) fn set_aside(&self, run: RunId) -> bool {
        self.stored.get(&run).is_some_and(|count| *count >= REFUSALS_MAX)
    }

    /// The run was repaired. Returns whether it was set aside, which it no longer is.
    pub(super) fn forgive(&mut self, run: RunId) -> bool {
        self.stored.remove(&run).is_some_and(|count| count >= REFUSALS_MAX)
    }

    /// Whether the store refused the first writes of the run too often. Forgets them if so, because
    /// its start is answered with a failure.
    pub(super) fn take_unstarted(&mut self, run: RunId) -> bool {
        let rejected = self.unstarted.get(&run).is_some_and(|count| *count >= REFUSALS_MAX);
        if rejected {
            self.unstarted.remove(&run);
        }
        rejected
    }
}
