//! The way of calls whose shard is not served here, or not for much longer: where to try, when to try
//! again, and when to give up. The calls themselves stay with the driver.
//!
//! | the call | the shard | becomes |
//! |---|---|---|
//! | failed, and may not be made again | | refused |
//! | failed | has moved since the try began | tried where it is now |
//! | failed | | waiting, for a pause |
//! | waiting | moves, or the pause is over | tried where it is now |
//! | waiting | is nowhere for longer than a takeover takes | refused |

use std::{collections::BTreeMap, time::Duration};

use abide_core::{
    ids::ShardId,
    operation::{CallError, Ticket},
};

use super::{Node, NodeOutput};

/// How long a node is left in peace that said that it does not serve a shard, should nothing be heard of
/// the shard meanwhile.
const PAUSE: Duration = Duration::from_millis(100);

/// Calls on their way to the node that serves their shard.
#[derive(Debug)]
pub(super) struct Routes {
    /// How long a call waits for a shard that nobody serves.
    patience: Duration,
    calls: BTreeMap<Ticket, Route>,
}

/// The way of one call.
#[derive(Debug)]
struct Route {
    shard: ShardId,
    /// The call may be made any number of times.
    repeatable: bool,
    /// When the last try began, and whether the shard has moved since.
    tried_at: Duration,
    moved: bool,
    /// Until when it is tried, since the shard was first missed.
    until: Option<Duration>,
    /// When the next try begins at the latest; none during a try.
    again_at: Option<Duration>,
}

impl Routes {
    pub(super) const fn new(patience: Duration) -> Self {
        Self { patience, calls: BTreeMap::new() }
    }

    /// When a call is to be tried again.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        self.calls.values().filter_map(|route| route.again_at).min()
    }
}

impl Route {
    /// What was not served has not happened. Of anything else that passes nobody knows.
    fn may_repeat(&self, error: &CallError) -> bool {
        match error {
            CallError::NotServed => true,
            CallError::Reset | CallError::Unavailable(_) => self.repeatable,
            _ => false,
        }
    }
}

impl<S: Clone> Node<S> {
    /// A call was not served here. Where else it may be served is not known to be old yet.
    pub(super) fn route(
        &mut self,
        now: Duration,
        (ticket, shard): (Ticket, ShardId),
        repeatable: bool,
        error: CallError,
    ) {
        let moved = !self.served.contains(&shard);
        let route = Route { shard, repeatable, tried_at: now, moved, until: None, again_at: None };
        self.routes.calls.insert(ticket, route);
        self.failed(now, ticket, error);
    }

    /// A try has failed.
    pub(super) fn failed(&mut self, now: Duration, ticket: Ticket, error: CallError) {
        let patience = self.routes.patience;
        let Some(route) = self.routes.calls.get_mut(&ticket) else { return };
        if !route.may_repeat(&error) {
            return self.refuse(ticket, error);
        }
        // A call may have waited for its run for long before its shard moved.
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

    /// The call needs no way any more.
    pub(super) fn abandon(&mut self, ticket: Ticket) {
        self.routes.calls.remove(&ticket);
    }

    /// The shard is served by somebody else than before.
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

    /// Tries what has waited for long enough.
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
