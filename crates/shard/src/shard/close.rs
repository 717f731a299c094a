//! Closing a shard on this node. A shard that is handed over finishes what is in flight; one whose
//! lease has expired drops it, because another node may already own the shard. Both end with
//! [`Output::Released`], once the store has answered the last commit.
//!
//! | closing | message | becomes |
//! |---|---|---|
//! | No | `Close` | Finishing: calls are not served, matches fail |
//! | No, Finishing | work to dispatch without a valid lease | Lapsing |
//! | any | `Lapse`, or the message that led to Lapsing is done | Finishing, with nothing in memory |
//! | Finishing | neither a read nor a commit is in flight | Released |

use abide_core::{
    dispatch::{Dispatch, Worker},
    operation::CallError,
};

use super::{Shard, State};
use crate::message::Output;

/// Progress of handing a shard over to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// The shard is served on this node.
    No,
    /// The lease has expired; the current message is finished first.
    Lapsing,
    /// The shard waits for what is in flight.
    Finishing,
    /// Another node may own the shard.
    Released,
}

impl Shard {
    /// Accepts nothing more. What has not begun is left to the next owner.
    pub(super) fn hand_over(&mut self) {
        if self.closing != Closing::No {
            return;
        }
        self.closing = Closing::Finishing;
        if self.state != State::Open {
            for (ticket, _) in std::mem::take(&mut self.memory.early) {
                self.refuse(ticket, CallError::NotServed);
            }
            self.stop();
        }
    }

    /// The lease has expired: nothing in memory can be trusted. All calls fail at once, because the
    /// store may take long to answer a node that is cut off from it.
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

    /// Withholds work, because another owner may have its result by now. The worker gets its credit
    /// back, and the shard drops its memory, including the start of the work.
    pub(super) fn withhold(&mut self, worker: Worker, dispatch: &Dispatch) {
        if let Some(offer) = self.credit_of(dispatch) {
            self.emit(Output::Unmatched(offer, worker));
        }
        self.closing = Closing::Lapsing;
    }

    /// Releases a closing shard once no read and no commit is in flight. Callers that still wait
    /// are failed by the driver.
    pub(super) fn release_if_idle(&mut self) {
        let idle = self.memory.reads.is_empty() && !self.committing && !self.has_writes();
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
