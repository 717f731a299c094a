//! Callers that wait for something to happen to a run: its close, its next event, a change of its
//! waits, the outcome of an update.

use std::{collections::BTreeMap, sync::Arc};

use abide_core::{
    failure::Failure,
    ids::{EventNumber, RunId, UpdateId},
    operation::{AnyAnswer, CallError, Closed, Events, RunWaits, Ticket, UpdateAnswer},
    run::{Run, ShownWait, Status},
};

use super::{
    Shard, Todo,
    update::{self, AwaitedUpdate},
};

/// What a caller waits for.
#[derive(Debug)]
pub(super) enum Until {
    /// Until the run is closed.
    Closed,
    /// Until the run has an event after this one, or is closed.
    Events(EventNumber),
    /// Until the run's waits change after this row of its log, or the run is closed.
    Waits(u64),
    /// Until the update reaches the requested stage.
    Update(Box<AwaitedUpdate>),
}

/// Data for answering the waiters of a run, shared between them.
#[derive(Default)]
struct News<'a> {
    rejected: &'a [(UpdateId, Failure)],
    /// The run's waits, computed once for all waiters.
    waits: Option<Arc<Vec<ShownWait>>>,
}

/// All waiting callers, by run and in the order of their tickets.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    of_run: BTreeMap<RunId, BTreeMap<Ticket, Until>>,
    runs: BTreeMap<Ticket, RunId>,
}

impl Waiters {
    /// Whether a caller waits for the run.
    pub(super) fn any(&self, run: RunId) -> bool {
        self.of_run.contains_key(&run)
    }

    /// Drops a waiter whose caller has disconnected.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        let Some(run) = self.runs.remove(&ticket) else { return };
        let Some(waiting) = self.of_run.get_mut(&run) else { return };
        waiting.remove(&ticket);
        if waiting.is_empty() {
            self.of_run.remove(&run);
        }
    }

    fn count(&self, run: RunId) -> usize {
        self.of_run.get(&run).map_or(0, BTreeMap::len)
    }

    fn add(&mut self, run: RunId, ticket: Ticket, until: Until) {
        self.of_run.entry(run).or_default().insert(ticket, until);
        self.runs.insert(ticket, run);
    }

    /// Takes all waiters of the run; those that go on waiting are added again.
    fn take(&mut self, run: RunId) -> BTreeMap<Ticket, Until> {
        let waiting = self.of_run.remove(&run).unwrap_or_default();
        for ticket in waiting.keys() {
            self.runs.remove(ticket);
        }
        waiting
    }
}

impl Shard {
    /// Answers when the condition holds, which may be at once.
    pub(super) fn await_run(&mut self, run: RunId, ticket: Ticket, until: Until) {
        if self.memory.waiters.count(run) >= self.limits.run_waiters {
            return self.reply(ticket, Err(CallError::Overloaded));
        }
        self.answer_or_keep(run, &mut News::default(), ticket, until);
    }

    /// Answers all waiters of the run whose condition holds.
    pub(super) fn check_waiters(&mut self, run: RunId, rejected: &[(UpdateId, Failure)]) {
        let mut news = News { rejected, waits: None };
        for (ticket, until) in self.memory.waiters.take(run) {
            self.answer_or_keep(run, &mut news, ticket, until);
        }
    }

    fn answer_or_keep(&mut self, run: RunId, news: &mut News<'_>, ticket: Ticket, until: Until) {
        let Some(entry) = self.memory.cache.peek(run) else {
            return self.memory.waiters.add(run, ticket, until);
        };
        if let Some(answer) = until.answer(&entry.run, news) {
            return self.reply_after(run, ticket, answer);
        }
        match (until, entry.run.status) {
            // The next run has the update, or receives it now.
            (Until::Update(awaited), Status::Closed { next_run: Some(next), .. }) => {
                let todo = Todo::Request(ticket, awaited.at(next));
                self.memory.woken.push_back((next, todo));
            }
            (until, _) => self.memory.waiters.add(run, ticket, until),
        }
    }
}

impl Until {
    fn answer(&self, run: &Run, news: &mut News<'_>) -> Option<Result<AnyAnswer, CallError>> {
        match self {
            Self::Closed => closed(run).map(|closed| Ok(closed.into())),
            Self::Events(after) => {
                let (last_event, closed) = (run.last_event, !run.open());
                (last_event > *after || closed)
                    .then(|| Ok(Events { run: run.id, last_event, closed }.into()))
            }
            Self::Waits(after) => waits(run, *after, news).map(|waits| Ok(waits.into())),
            Self::Update(awaited) => {
                let asked = &awaited.asked;
                let rejected = news.rejected.iter().find(|(id, _)| *id == asked.update);
                match rejected {
                    Some((_, failure)) => Some(Ok(UpdateAnswer::Rejected(failure.clone()).into())),
                    None => update::answer(run, asked),
                }
            }
        }
    }
}

fn closed(run: &Run) -> Option<Closed> {
    let Status::Closed { how, next_run, .. } = run.status else { return None };
    Some(Closed { run: run.id, how, outcome: run.outcome.clone(), next_run })
}

/// The answer to [`Until::Waits`]. A caller without a known row (`after` is 0) is answered at once.
fn waits(run: &Run, after: u64, news: &mut News<'_>) -> Option<RunWaits> {
    let (log_row, closed) = (run.log_rows, !run.open());
    (after == 0 || run.waits_row > after || closed).then(|| {
        let waits = news.waits.get_or_insert_with(|| Arc::new(run.shown_waits()));
        RunWaits { run: run.id, log_row, waits: Arc::clone(waits), closed }
    })
}
