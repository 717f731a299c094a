//! Opening the shard, and losing it. When a commit fails or its outcome is unknown, the shard drops
//! everything in memory and reopens in the normal way, as a new incarnation.
//!
//! | state | message | becomes |
//! |---|---|---|
//! | Closed | Open | Reading |
//! | Reading | shard row | Claiming: the epoch is raised before anything else is read |
//! | Claiming | committed | Open |
//! | Claiming, Open | commit refused or unknown, read failed | Closed, to be reopened |
//! | Claiming, Open | the store accepts no writes | Closed, read-only, to be reopened |
//! | any but Halted | the clock was set back | Closed, to be reopened |
//! | Claiming, Open | stale epoch | Reading |
//! | Reading, after a stale epoch | shard row of another owner | Halted |
//! | any | store stopped, or closed and idle | Halted |
//!
//! While the store accepts no writes, memory holds only what is stored, and calls that change
//! nothing are served. All others are refused at once. The shard keeps retrying its claim; when the
//! store accepts it, everything is read again. As long as the claim of an earlier owner stands, that
//! owner may still write, even without a lease; then nothing that was read is used for a later call.
//!
//! A stale epoch may be caused by this shard itself: a claim of unknown outcome that was applied
//! late. The owner in the shard's row shows it, because no two processes share an owner name.

use std::time::Duration;

use abide_core::{
    operation::{CallError, Ticket},
    retry::RetryPolicy,
};
use abide_store::{Batch, CommitError, Write, rows::ShardRow};

use super::{Closing, Load, Memory, Reading, Request, Shard, Unanswered, refusals::Rejected};
use crate::{
    alarm::Alarm,
    message::{Fetch, Halt, Notice, Output},
    pipeline::Pipeline,
};

/// Whether the shard is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not in memory. Unless the shard closes, it reopens by itself.
    Closed,
    /// The shard's row is being read.
    Reading,
    /// The new epoch is being written.
    Claiming,
    /// In memory and serving requests.
    Open,
    /// For good: another process owns the shard, the store has stopped, or the shard was released.
    Halted,
}

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
        self.claimed = row.owner == self.owner;
        self.inherited = !self.claimed;
        self.state = State::Claiming;
        self.epoch = row.epoch + 1;
        let claim = Write::Claim { epoch: self.epoch, owner: self.owner.clone() };
        let batch = Batch { shard: self.id, epoch: row.epoch, writes: vec![claim] };
        self.commit(batch);
    }

    /// Sends a batch to the store. One is in flight at a time: a new incarnation waits for the
    /// answer to the previous one's commit.
    pub(super) fn commit(&mut self, batch: Batch) {
        self.committing = true;
        self.emit(Output::Commit(batch));
    }

    pub(super) fn committed(&mut self, result: Result<(), CommitError>) {
        self.committing = false;
        match (self.state, result) {
            (State::Claiming, Ok(())) => {
                self.claimed = true;
                self.opened();
            }
            (State::Open, Ok(())) => {
                self.resets = 0;
                self.refusals.committed(&self.memory.pipeline);
                self.memory.pipeline.set_alone(self.refusals.alone());
                for output in self.memory.pipeline.commit_done() {
                    self.release(output);
                }
                self.wake_durable();
                self.memory.cache.allow_shrinking();
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
                    self.refused(&reason);
                }
                self.reset();
            }
            // The commit of an earlier incarnation, which ended with a failed read.
            (State::Closed, _) => self.memory.alarms.set(self.now(), Alarm::Reopen),
            (State::Reading | State::Halted, _) => {}
        }
    }

    fn halt(&mut self, why: Halt) {
        self.reset();
        self.state = State::Halted;
        self.emit(Output::Halted(why));
    }

    /// The store refused a batch: operators hear of the runs that were refused too often.
    fn refused(&mut self, reason: &str) {
        for rejected in self.refusals.refused(&self.memory.pipeline) {
            let notice = match rejected {
                Rejected::Stored(run) => Notice::SetAside(run, reason.to_owned()),
                Rejected::Unstarted(run) => Notice::Unstarted(run, reason.to_owned()),
            };
            self.emit(Output::Notice(notice));
        }
    }

    fn opened(&mut self) {
        if self.memory.read_only.is_some() {
            self.wait_for_opening();
        }
        self.state = State::Open;
        self.opened_at = self.now();
        self.starts = 0;
        self.memory.pipeline = Pipeline::new(self.id, self.epoch, self.refusals.alone());
        self.emit(Output::Opened);
        self.scan_tasks(None);
        self.scan_outbox(None);
        let sweep_at = self.now().saturating_add(self.limits.sweep_interval);
        self.memory.alarms.set(sweep_at, Alarm::Sweep);
        for (ticket, request) in std::mem::take(&mut self.memory.early) {
            if self.calls.contains_key(&ticket) {
                self.receive(ticket, request);
            }
        }
    }

    /// Drops all memory and fails all calls; callers retry.
    pub(super) fn reset(&mut self) {
        for (ticket, pending) in std::mem::take(&mut self.calls) {
            self.emit(pending.refused(ticket, CallError::Reset));
        }
        self.drop_memory();
        self.close();
    }

    /// The store accepts no writes for now. Nothing was written, so calls that change something
    /// fail at once, and calls that only read are served from what is stored.
    fn read_only(&mut self, error: &CommitError) {
        self.emit(Output::Notice(Notice::ReadOnly(error.clone())));
        let why = error.to_string();
        if let Some(before) = &mut self.memory.read_only {
            *before = why;
            return self.close();
        }
        self.turn_away_writers(&CallError::Unavailable(why.clone()));
        let readers = self.readers();
        self.drop_memory();
        self.memory.read_only = Some(why);
        self.close();
        for (ticket, request) in readers {
            self.receive(ticket, request);
        }
    }

    /// Whether an earlier owner may still write, because the store has not accepted the claim of this
    /// one.
    pub(super) fn others_may_write(&self) -> bool {
        self.memory.read_only.is_some() && !self.claimed
    }

    /// The clock was set back. Alarms in memory were computed from a time that lies in the future
    /// now, so they are dropped; stored due times are still right.
    pub(super) fn clock_set_back(&mut self) {
        self.turn_away_writers(&CallError::Reset);
        self.wait_for_opening();
        self.close();
    }

    /// Drops all memory; calls that only read wait until the shard is open.
    fn wait_for_opening(&mut self) {
        let readers = self.readers();
        self.drop_memory();
        self.memory.early = readers;
    }

    fn turn_away_writers(&mut self, error: &CallError) {
        let writers = |_: &Ticket, pending: &mut Unanswered| {
            matches!(pending, Unanswered::Operation(None) | Unanswered::Report(_))
        };
        for (ticket, pending) in self.calls.extract_if(.., writers).collect::<Vec<_>>() {
            self.emit(pending.refused(ticket, error.clone()));
        }
    }

    /// Unanswered requests that change nothing.
    fn readers(&self) -> Vec<(Ticket, Request)> {
        let kept = self.calls.iter().filter_map(|(ticket, pending)| match pending {
            Unanswered::Operation(kept) => Some((*ticket, Request::Operation(kept.clone()?))),
            Unanswered::Report(_) => None,
        });
        kept.collect()
    }

    /// Drops everything in memory except unanswered calls.
    fn drop_memory(&mut self) {
        if self.state == State::Open || self.memory.read_only.is_some() {
            self.give_back();
            self.emit(Output::Closed);
        }
        self.memory = Memory::new(self.id, &self.limits);
    }

    /// Closes the shard and sets the alarm to reopen it.
    pub(super) fn close(&mut self) {
        self.state = State::Closed;
        self.resets += 1;
        self.memory.alarms.set(self.now().saturating_add(self.reopen_delay()), Alarm::Reopen);
    }

    /// Returns the credit of workers whose match fails.
    fn give_back(&mut self) {
        let waiting = self.memory.pipeline.take_waiting();
        let mut parked: Vec<_> =
            self.memory.loads.values_mut().flat_map(Load::take_matched).collect();
        parked.extend(self.memory.gates.take_matched());
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

    /// Delay before the shard reopens: none after the first reset, then growing up to five seconds,
    /// or one second while the store accepts no writes.
    fn reopen_delay(&self) -> Duration {
        let most = Duration::from_secs(if self.memory.read_only.is_some() { 1 } else { 5 });
        let policy = RetryPolicy {
            initial_interval: Duration::from_millis(50),
            maximum_interval: most,
            ..RetryPolicy::default()
        };
        if self.resets <= 1 { Duration::ZERO } else { policy.delay_after(self.resets - 1) }
    }
}
