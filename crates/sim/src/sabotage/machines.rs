//! Bugs in the inputs and outputs of the node machines: credit, links, streams of workers, routing
//! of calls.

use std::collections::BTreeMap;

use abide_core::{
    dispatch::{Given, QueueKey},
    ids::BuildId,
};
use abide_shard::{
    message::Message,
    node::{NodeInput, NodeOutput, PeerMessage},
};

use super::{Bug, Saboteur};
use crate::world::Stream;

/// State of these bugs.
#[derive(Debug)]
pub(super) struct Remembered {
    /// The first stream of each session.
    streams: BTreeMap<u64, Stream>,
    /// The last message about credit, sent after the next one.
    spare: BTreeMap<(String, QueueKey, Option<BuildId>), PeerMessage>,
    /// Whether a waiting call is tried because its time has come, or its shard has moved.
    wakes: bool,
}

impl Remembered {
    pub(super) const fn new() -> Self {
        Self { streams: BTreeMap::new(), spare: BTreeMap::new(), wakes: false }
    }
}

impl Saboteur {
    /// The input as a node's machine gets it, if it does.
    pub(crate) fn node_input(&mut self, input: NodeInput<Stream>) -> Option<NodeInput<Stream>> {
        if self.bug.is_none() {
            return Some(input);
        }
        self.remembered.wakes =
            !matches!(input, NodeInput::Route { .. } | NodeInput::Failed { .. });
        let lost = match &input {
            NodeInput::Unlinked(_) => self.bug == Some(Bug::UntoldLinkEnd),
            NodeInput::Called(_) => self.bug == Some(Bug::UntoldLink),
            NodeInput::StreamEnded { .. } => self.strikes(Bug::UntoldStreamEnd),
            NodeInput::Unmatched(..) => self.strikes(Bug::LostCredit),
            NodeInput::Hold { .. } => self.bug == Some(Bug::HoldIgnored),
            NodeInput::Resume { .. } => self.bug == Some(Bug::LostResume),
            NodeInput::Undelivered(..) => self.bug == Some(Bug::LostUndelivered),
            NodeInput::Received(_, PeerMessage::Unmatched(..)) => self.strikes(Bug::LostLoan),
            NodeInput::Received(_, PeerMessage::Declined(_)) => self.strikes(Bug::LostDecline),
            NodeInput::Received(_, PeerMessage::Dispatch(..)) => self.strikes(Bug::LostForeignWork),
            NodeInput::Received(_, PeerMessage::Matched(..)) => self.strikes(Bug::LostForeignMatch),
            _ => false,
        };
        (!lost).then_some(input)
    }

    /// The output as the world gets it: not at all, once or twice.
    pub(crate) fn node_output(&mut self, output: NodeOutput<Stream>) -> Vec<NodeOutput<Stream>> {
        let Some(bug) = self.bug else { return vec![output] };
        match output {
            NodeOutput::ToPeer(_, PeerMessage::SessionLost(_)) if bug == Bug::UntoldSessionEnd => {
                vec![]
            }
            NodeOutput::ToPeer(_, PeerMessage::Spare { .. }) if bug == Bug::UntoldSpare => vec![],
            NodeOutput::ToPeer(to, message @ PeerMessage::Spare { .. })
                if bug == Bug::OvertakenSpare =>
            {
                self.overtake(to, message)
            }
            NodeOutput::ToShard(_, Message::Matched(..)) if self.strikes(Bug::MatchedTwice) => {
                vec![output.clone(), output]
            }
            NodeOutput::ToShards(Message::Refill(_)) if bug == Bug::LostRefill => vec![],
            NodeOutput::ToShards(Message::SessionLost(_)) if bug == Bug::UntoldShards => vec![],
            NodeOutput::ToWorker(stream, given @ Given::Work(_)) if bug == Bug::OldStream => {
                let first = *self.remembered.streams.entry(stream.session).or_insert(stream);
                vec![NodeOutput::ToWorker(first, given)]
            }
            NodeOutput::TryHere(_) | NodeOutput::Forward(..)
                if self.remembered.wakes && self.strikes(Bug::CallNotWoken) =>
            {
                vec![]
            }
            output => vec![output],
        }
    }

    /// Swaps this message with the previous one, if both are about the same credit.
    fn overtake(&mut self, to: String, message: PeerMessage) -> Vec<NodeOutput<Stream>> {
        let PeerMessage::Spare { queue, build, .. } = &message else { return vec![] };
        let place = (to.clone(), queue.clone(), build.clone());
        let said = |message| NodeOutput::ToPeer(to.clone(), message);
        match self.remembered.spare.remove(&place) {
            Some(earlier) => vec![said(message), said(earlier)],
            None => {
                self.remembered.spare.insert(place, message);
                vec![]
            }
        }
    }
}
