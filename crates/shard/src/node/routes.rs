//! Routing of calls whose shard this node does not serve: where to try, when to retry, and when to
//! give up. The calls themselves stay with the driver.
//!
//! | the call | the shard | becomes |
//! |---|---|---|
//! | failed, and must not be retried | | refused |
//! | failed | has moved since the try began | tried where it is now |
//! | failed | | waiting, for a pause |
//! | waiting | moves, or the pause is over | tried where it is now |
//! | waiting | has no owner for longer than a takeover takes | refused |

use std::{collections::BTreeMap, time::Duration};

use abide_core::{
    ids::ShardId,
    operation::{CallError, Ticket},
};

use super::{Node, NodeOutput};

/// How long to wait before a retry at a node that does not serve the shard, unless the shard moves.
const PAUSE: Duration = Duration::from_millis(100);

/// Calls that look for the owner of their shard.
#[derive(Debug)]
pub(super) struct Routes {
    /// How long a call waits for a shard without an owner.
    patience: Duration,
    calls: BTreeMap<Ticket, RoutedCall>,
}

/// The routing state of one call.
#[derive(Debug)]
struct RoutedCall {
    shard: ShardId,
    /// The call changes nothing, so it can be retried after any failure.
    repeatable: bool,
    /// When the last try began. `moved`: the shard has moved since.
    tried_at: Duration,
    moved: bool,
    /// When to give up; set when the shard was first missed.
    until: Option<Duration>,
    /// Latest start of the next try; none during a try.
    again_at: Option<Duration>,
}

impl Routes {
    pub(super) const fn new(patience: Duration) -> Self {
        Self { patience, calls: BTreeMap::new() }
    }

    /// When the next retry is due.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        self.calls.values().filter_map(|route| route.again_at).min()
    }
}

impl RoutedCall {
    /// A call that was not served had no effect. After any other passing error its outcome is
    /// unknown.
    fn may_repeat(&self, error: &CallError) -> bool {
        match error {
            CallError::NotServed => true,
            CallError::Reset | CallError::Unavailable(_) => self.repeatable,
            _ => false,
        }
    }
}

impl<S: Clone> Node<S> {
    /// A call failed on this node. The known owner, if it is another node, has not been tried yet.
    pub(super) fn route(
        &mut self,
        now: Duration,
        (ticket, shard): (Ticket, ShardId),
        repeatable: bool,
        error: CallError,
    ) {
        let moved = !self.served.contains(&shard);
        let route =
            RoutedCall { shard, repeatable, tried_at: now, moved, until: None, again_at: None };
        self.routes.calls.insert(ticket, route);
        self.failed(now, ticket, error);
    }

    /// A try has failed: retries, waits or gives up.
    pub(super) fn failed(&mut self, now: Duration, ticket: Ticket, error: CallError) {
        let patience = self.routes.patience;
        let Some(route) = self.routes.calls.get_mut(&ticket) else { return };
        if !route.may_repeat(&error) {
            return self.refuse(ticket, error);
        }
        // A call may have waited a long time for its run before the shard moved: that time does not
        // count.
        route.until = route.until.filter(|_| now < route.tried_at + patience);
        let until = *route.until.get_or_insert(now + patience);
        if now >= until {
            return self.refuse(ticket, error);
        }
        if route.moved {
            return self.try_now(now, ticket);
        }
        route.again_at = Some(until.min(now + PAUSE));
    }

    /// The call is over.
    pub(super) fn abandon(&mut self, ticket: Ticket) {
        self.routes.calls.remove(&ticket);
    }

    /// The shard has another owner: waiting calls are tried at once.
    pub(super) fn moved(&mut self, now: Duration, shard: ShardId) {
        let mut waiting = Vec::new();
        let routes = self.routes.calls.iter_mut();
        for (ticket, route) in routes.filter(|(_, route)| route.shard == shard) {
            route.moved = true;
            waiting.extend(route.again_at.map(|_| *ticket));
        }
        for ticket in waiting {
            self.try_now(now, ticket);
        }
    }

    /// Retries the calls whose pause is over.
    pub(super) fn tick(&mut self, now: Duration) {
        let routes = self.routes.calls.iter();
        let due = routes.filter(|(_, route)| route.again_at.is_some_and(|at| at <= now));
        let due: Vec<_> = due.map(|(ticket, _)| *ticket).collect();
        for ticket in due {
            self.try_now(now, ticket);
        }
    }

    fn try_now(&mut self, now: Duration, ticket: Ticket) {
        let Some(route) = self.routes.calls.get_mut(&ticket) else { return };
        route.tried_at = now;
        route.moved = false;
        route.again_at = None;
        let shard = route.shard;
        if self.served.contains(&shard) {
            self.emit(NodeOutput::TryHere(ticket));
        } else if let Some(owner) = self.neighbours.owner(shard).cloned() {
            self.emit(NodeOutput::Forward(ticket, owner));
        } else {
            self.failed(now, ticket, CallError::NotServed);
        }
    }

    fn refuse(&mut self, ticket: Ticket, error: CallError) {
        self.routes.calls.remove(&ticket);
        self.emit(NodeOutput::Refuse(ticket, error));
    }
}
