//! One shard of a driver: its machine, and what its outputs lead to.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use abide_core::{
    ids::{RunId, ShardId},
    operation::{AnyAnswer, Ticket},
    report::ReportAnswer,
    time::Timestamp,
};
use abide_shard::{
    message::{Fetch, Message, Output},
    node::NodeInput,
    shard::Shard,
};
use tokio::sync::OwnedSemaphorePermit;

use super::{Moments, Requested, StoreRequest};
use crate::node::{Node, ReplySender};

pub(super) struct DrivenShard {
    id: ShardId,
    node: Arc<Node>,
    pub(super) machine: Shard,
    /// Tells the shard from one with the same id that was served before.
    pub(super) opening: u64,
    /// Reply channels of clients and operators that wait for an answer.
    pub(super) callers: BTreeMap<Ticket, ReplySender<AnyAnswer>>,
    /// Reply channels of workers that wait for an acknowledgement.
    pub(super) reporters: BTreeMap<Ticket, ReplySender<ReportAnswer>>,
    /// Runs that are being loaded. Large ones count until what was then written is durable, because they
    /// cannot leave before.
    pub(super) loading: BTreeMap<RunId, OwnedSemaphorePermit>,
    /// When the machine wants a tick.
    pub(super) wake_at: Option<Timestamp>,
    /// This node no longer serves the shard.
    pub(super) ended: bool,
    /// Matches of work that this shard has just offered.
    matched: VecDeque<Message>,
}

impl DrivenShard {
    pub(super) fn new(id: ShardId, node: &Arc<Node>, opening: u64) -> Self {
        let machine = Shard::new(id, node.owner.clone(), Arc::clone(&node.limits));
        Self {
            id,
            machine: machine.with_borders(Arc::clone(&node.borders)),
            node: Arc::clone(node),
            opening,
            callers: BTreeMap::new(),
            reporters: BTreeMap::new(),
            loading: BTreeMap::new(),
            wake_at: None,
            ended: false,
            matched: VecDeque::new(),
        }
    }

    /// Carries out all outputs of the machine; requests to the store are appended.
    pub(super) fn carry_out(&mut self, moments: &mut Moments, requests: &mut Vec<StoreRequest>) {
        loop {
            while let Some(output) = self.machine.poll() {
                if let Some(what) = self.carry_out_one(output) {
                    requests.push(StoreRequest { shard: self.id, opening: self.opening, what });
                }
            }
            let Some(message) = self.matched.pop_front() else { break };
            self.machine.handle(moments.next(), message);
        }
        if !self.loading.is_empty() {
            self.loading.retain(|run, _| self.machine.is_arriving(*run));
        }
        let fired = self.machine.take_fired();
        if fired > 0 {
            self.node.counters.timers_fired.add(fired);
        }
    }

    /// Carries out an output, or returns the request to the store that it is.
    fn carry_out_one(&mut self, output: Output) -> Option<Requested> {
        let node = &self.node;
        match output {
            Output::Fetch(ticket, fetch) => {
                // A run that is loaded from the start again waits for its turn again: if it kept the
                // permit that it has, such runs could wait for each other.
                if let Fetch::Load(run, _) = &fetch {
                    self.loading.remove(run);
                }
                return Some(Requested::Fetch(ticket, fetch));
            }
            Output::Commit(batch) => return Some(Requested::Commit(batch)),
            Output::Reply(ticket, reply) => {
                if let Some(answer) = self.callers.remove(&ticket) {
                    // Sending fails if the caller has disconnected.
                    drop(answer.send((reply, node.gauge.begin())));
                }
            }
            Output::Acknowledge(ticket, acknowledged) => {
                if let Some(answer) = self.reporters.remove(&ticket) {
                    drop(answer.send((acknowledged, node.gauge.begin())));
                }
            }
            Output::Offer(offer) => node.offer(offer, &mut self.matched),
            Output::Dispatch(worker, work) => node.tell(NodeInput::Dispatch(worker, work)),
            Output::Unmatched(offer, worker) => node.tell(NodeInput::Unmatched(offer, worker)),
            Output::Mail(shard, mail) => node.tell(NodeInput::Mail(shard, mail)),
            Output::Opened => node.opened(self.id),
            Output::Closed => node.tell(NodeInput::Closed(self.id)),
            Output::Released => self.ended = true,
            Output::Halted(why) => {
                node.settled_in(self.id);
                node.halted(self.id, &why);
                self.ended = true;
            }
            Output::Notice(notice) => node.notice(self.id, &notice),
        }
        None
    }
}
