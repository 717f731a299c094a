//! Taking the shard into memory, and losing it. A commit that failed, or whose outcome is unknown,
//! drops everything in memory; a new incarnation begins by the normal way.
//!
//! | state | message | becomes |
//! |---|---|---|
//! | Closed | Open | Reading |
//! | Reading | shard row | Claiming: the epoch is raised before anything else is read |
//! | Claiming | committed | Open |
//! | Claiming, Open | commit refused or unknown, read failed | Closed, to be opened again |
//! | Claiming, Open | the store takes no writes | Closed, read-only, to be opened again |
//! | any but Halted | the clock was set back | Closed, to be opened again |
//! | Claiming, Open | stale epoch | Reading |
//! | Reading, after a stale epoch | shard row of another owner | Halted |
//! | any | store stopped, or closed and idle | Halted |
//!
//! While the store takes no writes, memory holds nothing that is not stored, and calls that change nothing
//! are served. All others are refused at once. The claim that is tried again and again finds out when the
//! store takes writes, and then everything is read afresh.
//!
//! A stale epoch may be of this shard's own making: a claim of unknown outcome that was applied late. Who
//! owns the row tells, because no two processes have the same name as owners.

use std::time::Duration;

use abide_core::{
    operation::{CallError, Ticket},
    retry::RetryPolicy,
};
use abide_store::{Batch, CommitError, Write, rows::ShardRow};

use super::{Closing, Load, Outgoing, Pending, Reading, Request, Shard};
use crate::{
    alarm::{Alarm, Alarms},
    cache::Cache,
    message::{Fetch, Halt, Notice, Output},
    pipeline::Pipeline,
};

/// Where the shard stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not in memory.
    Closed,
    /// The shard's row is being read.
    Reading,
    /// The new epoch is being written.
    Claiming,
    /// In memory.
    Open,
    /// Somebody else's, or the store has stopped, or it was released.
    Halted,
}

/// How often the store may refuse a run's writes before the run is set aside.
pub(super) const REFUSALS_MAX: u32 = 2;

/// Runs that the store refused to begin once and that are remembered, so that a second refusal is known as
/// such. Only a child comes again under the same id; a start or a successor has a new one each time.
const UNSTARTED_MAX: usize = 1000;

/// After a refused batch, this many commits hold what one message led to, so that the next refusal
/// shows whose fault it is.
const ALONE_COMMITS: u32 = 100;

impl Shard {
    pub(super) fn open(&mut self) {
        if self.state == State::Closed && !self.committing && self.closing == Closing::No {
            self.state = State::Reading;
            self.fetch(Reading::Shard, Fetch::Shard);
        }
    }

    pub(super) fn claim(&mut self, row: ShardRow) {
        if self.state != State::Reading {
            return;
        }
        if let Some(why) = self.fenced.take_if(|_| row.owner != self.owner) {
            return self.halt(Halt::Taken(why));
        }
        self.fenced = None;
        self.state = State::Claiming;
        self.epoch = row.epoch + 1;
        let claim = Write::Claim { epoch: self.epoch, owner: self.owner.clone() };
        let batch = Batch { shard: self.id, epoch: row.epoch, writes: vec![claim] };
        self.commit(batch);
    }

    /// Hands a batch to the store. There is one at a time: a new incarnation waits for the answer to
    /// the last one's.
    pub(super) fn commit(&mut self, batch: Batch) {
        self.committing = true;
        self.emit(Output::Commit(batch));
    }

    pub(super) fn committed(&mut self, result: Result<(), CommitError>) {
        self.committing = false;
        match (self.state, result) {
            (State::Claiming, Ok(())) => self.opened(),
            (State::Open, Ok(())) => {
                self.resets = 0;
                self.alone_for = self.alone_for.saturating_sub(1);
                self.pipeline.set_alone(self.alone_for > 0);
                for run in self.pipeline.runs_in_flight() {
                    self.refused.remove(&run);
                    self.unstarted.remove(&run);
                }
                for output in self.pipeline.commit_done() {
                    self.release(output);
                }
                self.cache.allow_shrinking();
            }
            (
                State::Closed | State::Claiming | State::Open,
                Err(error @ CommitError::Stale { .. }),
            ) => {
                self.fenced = Some(error.to_string());
                self.reset();
                self.open();
            }
            (_, Err(error @ CommitError::Stopped(_))) => {
                self.halt(Halt::Stopped(error.to_string()));
            }
            (State::Claiming | State::Open, Err(error)) if error.passes() => {
                self.read_only(&error);
            }
            (State::Claiming | State::Open, Err(error)) => {
                if let CommitError::Refused(reason) = error {
                    self.suspect(&reason);
                }
                self.reset();
            }
            // The commit of an incarnation that a failed read has ended.
            (State::Closed, _) => self.alarms.set(self.now(), Alarm::Reopen),
            (State::Reading | State::Halted, _) => {}
        }
    }

    fn halt(&mut self, why: Halt) {
        self.reset();
        self.state = State::Halted;
        self.emit(Output::Halted(why));
    }

    /// The store refused a batch. Whose fault it is shows only if a message was committed alone.
    fn suspect(&mut self, reason: &str) {
        if self.alone_for > 0 {
            for run in self.pipeline.runs_in_flight() {
                let begins = self.pipeline.begins(run);
                let refused = if begins { &mut self.unstarted } else { &mut self.refused };
                let refusals = refused.entry(run).or_default();
                *refusals += 1;
                if *refusals == REFUSALS_MAX {
                    let notice = if begins { Notice::Unstarted } else { Notice::SetAside };
                    self.emit(Output::Notice(notice(run, reason.to_owned())));
                }
            }
            // Ids grow with time, so the oldest goes. It is most likely one that is never used again.
            while self.unstarted.len() > UNSTARTED_MAX {
                self.unstarted.pop_first();
            }
        }
        self.alone_for = ALONE_COMMITS;
    }

    fn opened(&mut self) {
        if self.read_only.is_some() {
            self.wait_for_opening();
        }
        self.state = State::Open;
        self.opened_at = self.now();
        self.starts = 0;
        self.pipeline = Pipeline::new(self.id, self.epoch, self.alone_for > 0);
        self.emit(Output::Opened);
        self.scan_tasks(None);
        self.scan_outbox(None);
        let sweep_at = self.now().saturating_add(self.limits.sweep_interval);
        self.alarms.set(sweep_at, Alarm::Sweep);
        for (ticket, request) in std::mem::take(&mut self.early) {
            if self.calls.contains_key(&ticket) {
                self.receive(ticket, request);
            }
        }
    }

    /// Forgets everything; callers repeat what they did not hear of.
    pub(super) fn reset(&mut self) {
        for (ticket, pending) in std::mem::take(&mut self.calls) {
            self.emit(pending.refused(ticket, CallError::Reset));
        }
        self.drop_memory();
        self.close();
    }

    /// The store takes no writes for now. Nothing was written, so those who asked for a change are told
    /// that at once, and those who only ask are answered from what is stored.
    fn read_only(&mut self, error: &CommitError) {
        self.emit(Output::Notice(Notice::ReadOnly(error.clone())));
        let why = error.to_string();
        if let Some(before) = &mut self.read_only {
            *before = why;
            return self.close();
        }
        self.turn_away_writers(&CallError::Unavailable(why.clone()));
        let readers = self.readers();
        self.drop_memory();
        self.read_only = Some(why);
        self.close();
        for (ticket, request) in readers {
            self.receive(ticket, request);
        }
    }

    /// The clock was set back. What memory means to do at some time counts from a time that has not come
    /// yet, so it is dropped; what is stored is due by the true time.
    pub(super) fn clock_set_back(&mut self) {
        self.turn_away_writers(&CallError::Reset);
        self.wait_for_opening();
        self.close();
    }

    /// Forgets everything. Those who only ask wait until the shard is open.
    fn wait_for_opening(&mut self) {
        let readers = self.readers();
        self.drop_memory();
        self.early = readers;
    }

    fn turn_away_writers(&mut self, error: &CallError) {
        let writers = |_: &Ticket, pending: &mut Pending| {
            matches!(pending, Pending::Operation(None) | Pending::Report)
        };
        for (ticket, pending) in self.calls.extract_if(.., writers).collect::<Vec<_>>() {
            self.emit(pending.refused(ticket, error.clone()));
        }
    }

    /// Requests without an answer that change nothing.
    fn readers(&self) -> Vec<(Ticket, Request)> {
        let kept = self.calls.iter().filter_map(|(ticket, pending)| match pending {
            Pending::Operation(kept) => Some((*ticket, Request::Operation(kept.clone()?))),
            Pending::Report => None,
        });
        kept.collect()
    }

    /// Nothing is in memory any more, but those who wait for answers.
    fn drop_memory(&mut self) {
        if self.state == State::Open || self.read_only.is_some() {
            self.give_back();
            self.emit(Output::Closed);
        }
        self.read_only = None;
        self.begun.clear();
        self.early.clear();
        self.woken.clear();
        self.reads.clear();
        self.cache = Cache::default();
        self.loads.clear();
        self.heads.clear();
        self.busy.clear();
        self.pipeline = Pipeline::new(self.id, 0, false);
        self.alarms = Alarms::new(self.limits.near_timers);
        self.waiters.clear();
        self.queries.clear();
        self.attempts.clear();
        self.outgoing = Outgoing::default();
        self.incoming.clear();
        self.refilled.clear();
        self.resend_set = false;
    }

    /// The shard is opened again by itself.
    pub(super) fn close(&mut self) {
        self.state = State::Closed;
        self.resets += 1;
        self.alarms.set(self.now().saturating_add(self.reopen_delay()), Alarm::Reopen);
    }

    /// Workers whose match comes to nothing have their credit back.
    fn give_back(&mut self) {
        let waiting = self.pipeline.take_waiting();
        let parked = self.loads.values_mut().flat_map(Load::take_matched).collect::<Vec<_>>();
        for (offer, worker) in parked {
            self.emit(Output::Unmatched(offer, worker));
        }
        for output in waiting {
            if let Output::Dispatch(worker, dispatch) = output
                && let Some(offer) = self.credit_of(&dispatch)
            {
                self.emit(Output::Unmatched(offer, worker));
            }
        }
    }

    /// The first reset is repeated at once; a store that keeps failing is asked less often, and one that
    /// lacks room every second.
    fn reopen_delay(&self) -> Duration {
        let most = Duration::from_secs(if self.read_only.is_some() { 1 } else { 5 });
        let policy = RetryPolicy {
            initial_interval: Duration::from_millis(50),
            maximum_interval: most,
            ..RetryPolicy::default()
        };
        if self.resets <= 1 { Duration::ZERO } else { policy.delay_after(self.resets - 1) }
    }
}
