//! Runs seeds: one at a time, or many on all processors. A seed is one world on one thread, so
//! concurrent seeds do not affect it.

use std::{
    any::Any,
    panic,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use crate::{
    checks::{Check, Violation},
    sabotage::{Bug, Saboteur},
    trace::Trace,
    world::{Counts, World},
};

/// Outcome of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub seed: u64,
    pub counts: Counts,
    /// The violated invariant, if any.
    pub violation: Option<Violation>,
    /// What happened before that, if it was requested.
    pub trace: Vec<String>,
}

/// Runs the world of a seed.
pub fn run_seed(seed: u64, bug: Option<Bug>) -> Outcome {
    live(seed, bug, None)
}

/// Like [`run_seed`], and keeps a trace.
pub fn trace_seed(seed: u64, bug: Option<Bug>, lines: Lines) -> Outcome {
    live(seed, bug, Some(lines))
}

/// Which lines of the trace are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Lines about the run that violated an invariant, if there is one.
    OfTheRun,
    All,
}

fn live(seed: u64, bug: Option<Bug>, lines: Option<Lines>) -> Outcome {
    let lived = panic::catch_unwind(|| {
        let mut world = World::new(seed, Saboteur::new(bug, seed), Trace::new(lines.is_some()));
        let violation = world.run().err();
        let run = violation.as_ref().and_then(|violation| violation.run);
        let run = run.filter(|_| lines == Some(Lines::OfTheRun));
        let trace = world.trace(run);
        Outcome { seed, counts: world.counts(), violation, trace }
    });
    lived.unwrap_or_else(|panicked| {
        let violation = Some(Violation::new(Check::NoPanic, message(&*panicked)));
        Outcome { seed, counts: Counts::default(), violation, trace: Vec::new() }
    })
}

fn message(panicked: &(dyn Any + Send)) -> String {
    let text = panicked.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panicked.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    pub first: u64,
    pub seeds: u64,
    /// No seed starts after this.
    pub until: Option<Instant>,
    /// A bug to inject into all of them.
    pub bug: Option<Bug>,
}

/// Outcome of many seeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of seeds that were run.
    pub seeds: u64,
    /// Sum over all worlds.
    pub counts: Counts,
    /// The lowest seed that failed; not all seeds after it were run.
    pub failure: Option<Outcome>,
}

impl Campaign {
    /// Runs the seeds in order on all processors, until one fails. Calls `progress` after each.
    pub fn run(&self, progress: impl Fn(&Summary) + Sync) -> Summary {
        let next = AtomicU64::new(0);
        let summary = Mutex::new(Summary::default());
        let threads = thread::available_parallelism().map_or(1, |count| count.get());
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(seed) = self.take(&next) {
                        let outcome = run_seed(seed, self.bug);
                        let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
                        if outcome.violation.is_some() {
                            next.store(self.seeds, Ordering::SeqCst);
                        }
                        summary.add(outcome);
                        progress(&summary);
                    }
                });
            }
        });
        summary.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, next: &AtomicU64) -> Option<u64> {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        let index = next.fetch_add(1, Ordering::SeqCst);
        (index < self.seeds).then(|| self.first.wrapping_add(index))
    }
}

impl Summary {
    fn add(&mut self, outcome: Outcome) {
        self.seeds += 1;
        self.counts.add(&outcome.counts);
        let lower = self.failure.as_ref().is_none_or(|failure| outcome.seed < failure.seed);
        if outcome.violation.is_some() && lower {
            self.failure = Some(outcome);
        }
    }
}

/// Panics are findings; the default hook would print each of them.
pub fn silence_panics() {
    panic::set_hook(Box::new(|_| {}));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_seeds_are_clean() {
        let campaign = Campaign { first: 0, seeds: 12, until: None, bug: None };
        let summary = campaign.run(|_| {});
        assert_eq!(summary.failure, None);
        assert_eq!(summary.seeds, 12);
        assert!(summary.counts.inputs / 12 >= 200, "{:?}", summary.counts);
        assert!(summary.counts.faults / 12 >= 5, "{:?}", summary.counts);
    }

    #[test]
    fn a_seed_is_the_same_world_every_time() {
        for seed in [3, 7] {
            let (one, two) =
                (trace_seed(seed, None, Lines::All), trace_seed(seed, None, Lines::All));
            assert!(!one.trace.is_empty());
            assert_eq!(one, two);
            assert_eq!(run_seed(seed, None).counts, one.counts);
        }
    }

    #[test]
    fn bugs_are_found() {
        let bugs = [
            Bug::EarlyAcknowledgement,
            Bug::LostCommit,
            Bug::EventInFuture,
            Bug::SnapshotNumber,
            Bug::WrongLastEvent,
            Bug::DuplicateDispatch,
            Bug::WaitRowNotMoved,
            Bug::OldDueRow,
            Bug::DeadlineIgnored,
            Bug::WrongChildOutcome,
            Bug::CleanupTwice,
            Bug::LocalValueChanged,
            Bug::EarlyTakeover,
            Bug::LostCredit,
            Bug::MatchedTwice,
            Bug::UntoldSpare,
            Bug::OldStream,
            Bug::ClockNeverBack,
            Bug::BorderOpen,
            Bug::ReusedUpdateId,
            Bug::ReusedStartKey,
        ];
        for bug in bugs {
            let seeds = bug.found_within();
            let campaign = Campaign { first: 0, seeds, until: None, bug: Some(bug) };
            assert!(campaign.run(|_| {}).failure.is_some(), "{} is not found", bug.name());
        }
    }

    #[test]
    fn a_panic_is_a_finding() {
        let panicked: Box<dyn Any + Send> = Box::new("words");
        assert_eq!(message(&*panicked), "words");
        assert_eq!(message(&1), "a panic without words");
    }
}
