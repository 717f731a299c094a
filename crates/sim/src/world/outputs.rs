//! Carries out the outputs of shard machines.

use abide_core::{
    dispatch::{Dispatch, Worker as Taker},
    ids::RunId,
};
use abide_shard::{
    message::{Output, Work},
    node::NodeInput,
};

use super::{World, calls::Told, slots::SlotId};
use crate::{
    checks::{Check, Checked, Violation},
    trace::brief,
};

impl World {
    /// Carries out an output of a machine.
    pub(super) fn carry_out(&mut self, id: SlotId, output: Output) -> Checked {
        let Some(slot) = self.slots.get_mut(&id) else { return Ok(()) };
        let (shard, node) = (slot.shard, slot.node);
        self.trace.note(run_of_output(&output), || {
            format!("{:>12} shard {shard}#{id} -> {}", self.now, brief(&output))
        });
        match output {
            Output::Fetch(ticket, fetch) => {
                self.read(id, ticket, &fetch);
                Ok(())
            }
            Output::Commit(batch) => self.begin_commit(id, batch),
            Output::Reply(ticket, result) => {
                self.plan_reply(ticket, result.map(Told::Answer));
                Ok(())
            }
            Output::Acknowledge(ticket, result) => {
                self.plan_reply(ticket, result.map(Told::Acknowledged));
                Ok(())
            }
            Output::Offer(offer) => self.tell(node, NodeInput::Offer(offer)),
            Output::Dispatch(taker, dispatch) => {
                slot.matched(&taker.session, Work::of(&dispatch));
                self.dispatch(id, taker, dispatch)
            }
            Output::Unmatched(offer, taker) => {
                slot.matched(&taker.session, (offer.run, offer.work));
                self.tell(node, NodeInput::Unmatched(offer, taker))
            }
            Output::Mail(target, mail) => self.tell(node, NodeInput::Mail(target, mail)),
            Output::Opened => self.tell(node, NodeInput::Opened(shard)),
            // A zombie must not withdraw the offers of its successor.
            Output::Closed if self.nodes[node].shards.get(&shard) == Some(&id) => {
                self.tell(node, NodeInput::Closed(shard))
            }
            Output::Closed => Ok(()),
            // A world has no log.
            Output::Notice(_) => Ok(()),
            Output::Released => self.drop_slot(id),
            Output::Halted(reason) => {
                self.trace.note(None, || format!("shard {shard}#{id} halted: {reason}"));
                self.drop_slot(id)
            }
        }
    }

    /// Dispatches work to a worker.
    fn dispatch(&mut self, id: SlotId, taker: Taker, dispatch: Box<Dispatch>) -> Checked {
        let Some(slot) = self.slots.get(&id) else { return Ok(()) };
        let node = slot.node;
        if !self.nodes[node].trusted(self.now) {
            let what = format!("node {node} gives work out without a good lease");
            return Err(Violation::of(Check::Withheld, Work::of(&dispatch).0, what));
        }
        let claim = self.ledger.claims.get(&slot.shard);
        let owner = claim.is_some_and(|claim| claim.writer == id);
        match &*dispatch {
            Dispatch::Workflow { token, given, last_event, .. } => {
                self.dispatches.task(&self.ledger, token, given, *last_event)?;
            }
            Dispatch::Activity { token, given, .. } => {
                self.dispatches.activity(&self.ledger, token, given, owner)?;
            }
            Dispatch::Query { token, last_event, .. } => {
                self.queried.insert(token.ticket, (token.run, *last_event));
            }
        }
        self.tell(node, NodeInput::Dispatch(taker, dispatch))
    }
}

fn run_of_output(output: &Output) -> Option<RunId> {
    match output {
        Output::Offer(offer) | Output::Unmatched(offer, _) => Some(offer.run),
        Output::Dispatch(_, dispatch) => Some(Work::of(dispatch).0),
        Output::Mail(_, mail) => Some(mail.key().run),
        _ => None,
    }
}
