//! Work that workers hold and have not answered. It holds time still: tasks and attempts take no
//! time.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use abide_core::{
    attempt::ActivityToken,
    dispatch::{Dispatch, WorkKind},
    ids::{EventNumber, ExecutionId, RunId, StartId},
    operation::Ticket,
    report::{QueryToken, Report, TaskToken},
};
use abide_engine::InFlight;
use abide_sdk::activity::ActivityInfo;

use crate::{lock::lock, time::Time};

/// Identifies work of a worker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Token {
    Task(RunId, StartId),
    Query(RunId, Ticket, u32),
    Attempt(RunId, EventNumber, u32),
}

impl From<&TaskToken> for Token {
    fn from(token: &TaskToken) -> Self {
        Self::Task(token.run, token.start)
    }
}

impl From<&QueryToken> for Token {
    fn from(token: &QueryToken) -> Self {
        Self::Query(token.run, token.ticket, token.attempt)
    }
}

impl From<&ActivityToken> for Token {
    fn from(token: &ActivityToken) -> Self {
        Self::Attempt(token.run, token.scheduled, token.start)
    }
}

impl Token {
    /// The work that this call answers.
    pub(crate) fn answered_by(report: &Report) -> Option<Self> {
        match report {
            Report::CompleteTask(token, _) | Report::FailTask { token, .. } => Some(token.into()),
            Report::AnswerQuery(token, _) => Some(token.into()),
            Report::ResolveActivity(token, _) | Report::DetachAttempt(token) => Some(token.into()),
            _ => None,
        }
    }

    /// The attempt that may turn out to be given up by this call.
    pub(crate) fn shown_by(report: &Report) -> Option<Self> {
        match report {
            Report::Heartbeat(token, _) | Report::PresentAttempt(token, _) => Some(token.into()),
            _ => None,
        }
    }
}

/// All work that workers of an environment hold.
#[derive(Clone, Default)]
pub(crate) struct WorkLedger(Arc<Mutex<LedgerState>>);

#[derive(Default)]
struct LedgerState {
    work: BTreeMap<Token, HeldEntry>,
    credit: BTreeMap<(u64, HeldKind), Credit>,
    streams: u64,
}

struct HeldEntry {
    stream: u64,
    /// For attempts: the activity, and the number of the attempt.
    attempt: Option<(ExecutionId, u32)>,
    /// Dropped when the work is answered, or by [`WorkLedger::release`].
    work: Option<InFlight>,
}

/// Kinds of work with separate credit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HeldKind {
    Workflow,
    Activity,
}

/// How much more work a worker accepts.
#[derive(Default)]
struct Credit {
    left: usize,
    /// Set while all credit is used up: there will be more when some of the work has ended. Until
    /// then, queued work may be about to start.
    used_up: Option<InFlight>,
}

impl LedgerState {
    fn attempt(&mut self, info: &ActivityInfo) -> Option<&mut HeldEntry> {
        let same = |token: &Token, entry: &HeldEntry| {
            let attempt = entry.attempt.as_ref().is_some_and(|(execution, attempt)| {
                *execution == info.given.execution && *attempt == info.given.attempt
            });
            attempt && matches!(token, Token::Attempt(run, ..) if *run == info.run)
        };
        let found = self.work.iter_mut().find(|(token, entry)| same(token, entry));
        found.map(|(_, entry)| entry)
    }
}

impl WorkLedger {
    /// Registers a stream and returns its number.
    pub(crate) fn open(&self) -> u64 {
        let mut state = self.lock();
        state.streams += 1;
        state.streams
    }

    /// The stream has ended, and its work with it.
    pub(crate) fn close(&self, stream: u64) {
        let mut state = self.lock();
        state.work.retain(|_, entry| entry.stream != stream);
        state.credit.retain(|(of, _), _| *of != stream);
    }

    /// The worker of a stream accepts more work.
    pub(crate) fn credit(&self, stream: u64, kind: WorkKind, credits: usize) {
        let kind = match kind {
            WorkKind::Workflow => HeldKind::Workflow,
            WorkKind::Activity => HeldKind::Activity,
        };
        let mut state = self.lock();
        let credit = state.credit.entry((stream, kind)).or_default();
        credit.left = credit.left.saturating_add(credits);
        credit.used_up = None;
    }

    /// The worker of a stream accepts no more work, so its credit need not be waited for.
    pub(crate) fn withdraw(&self, stream: u64) {
        let mut state = self.lock();
        for kind in [HeldKind::Workflow, HeldKind::Activity] {
            state.credit.insert((stream, kind), Credit { left: usize::MAX, used_up: None });
        }
    }

    /// Work arrives on a stream.
    pub(crate) fn given(&self, stream: u64, dispatch: &Dispatch, time: &Time) {
        let (token, attempt, kind) = match dispatch {
            Dispatch::Workflow { token, .. } => (token.into(), None, Some(HeldKind::Workflow)),
            Dispatch::Query { token, .. } => (token.into(), None, Some(HeldKind::Workflow)),
            Dispatch::Activity { token, given, eager } => {
                let attempt = Some((given.execution.clone(), given.attempt));
                (token.into(), attempt, (!eager).then_some(HeldKind::Activity))
            }
        };
        let mut state = self.lock();
        let work = Some(time.begin());
        state.work.insert(token, HeldEntry { stream, attempt, work });
        if let Some(kind) = kind {
            let credit = state.credit.entry((stream, kind)).or_default();
            credit.left = credit.left.saturating_sub(1);
            if credit.left == 0 {
                credit.used_up = Some(time.begin());
            }
        }
    }

    /// The work is answered, or its answer is no longer wanted.
    pub(crate) fn ended(&self, token: &Token) {
        self.lock().work.remove(token);
    }

    /// The attempt does nothing from here on: time passes meanwhile.
    pub(crate) fn release(&self, info: &ActivityInfo) {
        let mut state = self.lock();
        let Some(entry) = state.attempt(info) else { return };
        entry.work = None;
        let stream = entry.stream;
        // It may be what the worker must end before it takes more.
        if let Some(credit) = state.credit.get_mut(&(stream, HeldKind::Activity)) {
            credit.used_up = None;
        }
    }

    /// The attempt continues: it holds time again.
    pub(crate) fn resume(&self, info: &ActivityInfo, work: InFlight) {
        if let Some(entry) = self.lock().attempt(info) {
            entry.work = Some(work);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LedgerState> {
        lock(&self.0)
    }
}
