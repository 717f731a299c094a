//! Routing of a call to the node that serves its shard. The node machine decides where to try, when
//! to retry and when to give up; this waits for its decisions.

use std::{collections::BTreeMap, time::Duration};

use abide_core::{
    ids::ShardId,
    operation::{CallError, Ticket},
};
use abide_shard::node::{NodeInput, NodeOutput};
use tokio::{sync::oneshot, time::timeout};

use crate::{node::Node, outbox::Outbox};

/// Where to try a call.
#[derive(Debug)]
pub(crate) enum Destination {
    /// On this node.
    Here,
    /// On the node with this address.
    At(String),
}

/// Reply channels of calls that wait for a routing decision.
#[derive(Default)]
pub(crate) struct RouteReplies(BTreeMap<Ticket, oneshot::Sender<Result<Destination, CallError>>>);

impl RouteReplies {
    /// Delivers a routing decision of the machine. A decision for a caller that has disconnected is
    /// dropped.
    pub(crate) fn show(&mut self, output: NodeOutput<Outbox>) {
        let (ticket, place) = match output {
            NodeOutput::TryHere(ticket) => (ticket, Ok(Destination::Here)),
            NodeOutput::Forward(ticket, node) => (ticket, Ok(Destination::At(node))),
            NodeOutput::Refuse(ticket, error) => (ticket, Err(error)),
            _ => return,
        };
        if let Some(waiting) = self.0.remove(&ticket) {
            drop(waiting.send(place));
        }
    }
}

/// The routing of one call. It ends when this is dropped.
pub(crate) struct CallRoute<'a> {
    node: &'a Node,
    ticket: Ticket,
    shard: ShardId,
    repeatable: bool,
    begun: bool,
}

impl<'a> CallRoute<'a> {
    pub(crate) const fn new(
        node: &'a Node,
        ticket: Ticket,
        shard: ShardId,
        repeatable: bool,
    ) -> Self {
        Self { node, ticket, shard, repeatable, begun: false }
    }

    /// Waits until a retry is worthwhile and returns where to try. Returns the error if the call
    /// must not be retried or has been tried for long enough.
    pub(crate) async fn after(&mut self, error: CallError) -> Result<Destination, CallError> {
        let Self { ticket, shard, repeatable, .. } = *self;
        let input = match std::mem::replace(&mut self.begun, true) {
            false => NodeInput::Route { ticket, shard, repeatable, error },
            true => NodeInput::Failed { ticket, error },
        };
        let (sender, mut route) = oneshot::channel();
        self.node.tell_of_call(input, |routes| drop(routes.0.insert(ticket, sender)));
        if let Ok(place) = route.try_recv() {
            return place;
        }
        loop {
            let pause = self.node.until_tick().unwrap_or(LONGEST_PAUSE);
            match timeout(pause, &mut route).await {
                Ok(place) => return place.unwrap_or(Err(CallError::NotServed)),
                Err(_) => self.node.tell(NodeInput::Tick),
            }
        }
    }
}

/// How long to wait for a decision before sending a tick, when the machine sets no time.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Drop for CallRoute<'_> {
    fn drop(&mut self) {
        if self.begun {
            let ticket = self.ticket;
            let end = |routes: &mut RouteReplies| drop(routes.0.remove(&ticket));
            self.node.tell_of_call(NodeInput::Abandon(ticket), end);
        }
    }
}
