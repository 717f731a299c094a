//! The end of a shard's time at this node. A shard that is handed over finishes what is in flight; one
//! whose lease is over forgets it, because another node may have the shard already. Both end with
//! [`Output::Released`], once the store has answered the last commit.
//!
//! | closing | message | becomes |
//! |---|---|---|
//! | No | `Close` | Finishing: calls are not served, matches come to nothing |
//! | No, Finishing | work without a good lease | Lapsing |
//! | any | `Lapse`, or the message that led to Lapsing is done | Finishing, with nothing in memory |
//! | Finishing | neither a read nor a commit is in flight | Released |

use super::{Shard, State};
use crate::message::Output;
use abide_core::{
    dispatch::{Dispatch, Worker},
    operation::CallError,
};

/// How far a shard is from being another node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// It is served here.
    No,
    /// The lease is over, and the present message has to be finished first.
    Lapsing,
    /// What is in flight comes to its end.
    Finishing,
    /// Another node may have it.
    Released,
}

impl Shard {
    /// Takes nothing more. What was not begun is left to the next owner.
    pub(super) fn hand_over(&mut self) {
        if self.closing != Closing::No {
            return;
        }
        self.closing = Closing::Finishing;
        if self.state != State::Open {
            for (ticket, _) in std::mem::take(&mut self.early) {
                self.refuse(ticket, CallError::NotServed);
            }
            self.stop();
        }
    }

    /// The lease is over: nothing in memory can be trusted, and whoever waits is told at once, because
    /// the store may be long in answering a node that is cut off from it.
    pub(super) fn lapse(&mut self) {
        if self.closing != Closing::Released {
            self.closing = Closing::Finishing;
            self.stop();
        }
    }

    fn stop(&mut self) {
        if self.state != State::Halted {
            self.reset();
        }
    }

    /// Work is not given out, because another owner may have its result by now. The worker has its
    /// credit back, and the shard forgets that the work has begun.
    pub(super) fn withhold(&mut self, worker: Worker, dispatch: &Dispatch) {
        if let Some(offer) = self.credit_of(dispatch) {
            self.emit(Output::Unmatched(offer, worker));
        }
        self.closing = Closing::Lapsing;
    }

    /// Lets go of a shard that closes when the store has answered everything. Those who still wait for
    /// something to happen learn from the driver that the shard is gone.
    pub(super) fn release_if_idle(&mut self) {
        let idle = self.reads.is_empty() && !self.committing;
        if self.closing != Closing::Finishing || !idle || self.state == State::Halted {
            return;
        }
        self.calls.clear();
        self.reset();
        self.state = State::Halted;
        self.closing = Closing::Released;
        self.emit(Output::Released);
    }
}
