//! What nodes tell each other, carried out on either side. What is lost with a link is made good when a
//! link begins anew: both ends forget what was under way, and say again what the other must know.

use std::collections::BTreeSet;

use abide_core::{
    call::{Dispatch, Worker},
    ids::{SessionId, ShardId},
};
use abide_shard::{
    message::{Message, Offer, Work},
    neighbours::{Lost, Spare},
    queue::{QueueMessage, QueueOutput},
};

use crate::{
    node::{Node, Post},
    peers::PeerMessage,
};

impl Node {
    /// Tells a shard something, here or at the node that serves it.
    pub(crate) fn reach(&self, shard: ShardId, message: PeerMessage) {
        let owner = self.cluster.as_ref().filter(|_| !self.serves(shard));
        match owner.map(|cluster| cluster.owner(shard)) {
            None => self.tell_shard(shard, message),
            // What is lost is said again when the shard, or the way to it, begins anew.
            Some(Some(node)) => {
                self.send(&node, message);
            }
            Some(None) => {}
        }
    }

    /// Tells another node something; `false` if it cannot be reached.
    pub(crate) fn send(&self, node: &str, message: PeerMessage) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| cluster.peers.send(node, message))
    }

    pub(crate) fn broadcast(&self, message: &PeerMessage) {
        if let Some(cluster) = &self.cluster {
            cluster.broadcast(message);
        }
    }

    /// Another node says something.
    pub(crate) fn hear(&self, node: &str, message: PeerMessage) {
        let Some(cluster) = &self.cluster else { return };
        match message {
            PeerMessage::Spare { queue, build, credits } => {
                let spare = cluster.neighbours().lends(node, Spare { queue, build, credits });
                self.lent(node, spare);
            }
            PeerMessage::Offer(offer) => self.lend(node, offer),
            PeerMessage::Declined(offer) => {
                cluster.neighbours().answered(node, &offer);
                self.declined(node, offer);
            }
            PeerMessage::Matched(offer, worker) => self.hear_match(node, offer, worker),
            PeerMessage::Unmatched(offer, worker) => {
                if cluster.neighbours().settle(node, offer.run, offer.work, &worker.session) {
                    self.queue(QueueMessage::Unmatched(offer, worker));
                }
            }
            PeerMessage::Dispatch(worker, dispatch) => self.take(node, worker, *dispatch),
            PeerMessage::SessionCame(session) => {
                let elsewhere = cluster.neighbours().came(session.clone(), node);
                if !self.superseded(&session) && elsewhere {
                    self.post_all(&Message::SessionLost(session));
                }
            }
            PeerMessage::SessionLost(session) => {
                if cluster.neighbours().left(&session, node) {
                    self.post_all(&Message::SessionLost(session));
                }
            }
            PeerMessage::Opened(shards) => {
                cluster.opened(node, &shards);
                self.ask_for_attempts(&shards);
                self.post_all(&Message::SendAgain(shards));
            }
            PeerMessage::NewBuild(queue, build) => self.post_all(&Message::NewBuild(queue, build)),
            PeerMessage::Deliver(shard, _)
            | PeerMessage::Answered(shard, ..)
            | PeerMessage::Confirmed(shard, _) => self.tell_shard(shard, message),
            // The lease was told.
            PeerMessage::Look => {}
        }
    }

    /// A worker of another node takes work of a shard here. One that is connected to this node by now has
    /// left the other, which does not know it yet.
    fn hear_match(&self, node: &str, offer: Offer, worker: Worker) {
        let Some(cluster) = &self.cluster else { return };
        cluster.neighbours().answered(node, &offer);
        if self.connected(&worker.session) {
            self.send(node, PeerMessage::Unmatched(offer.clone(), worker));
            // The other node has credit left, of which it thinks that it is known here.
            return self.offer_again(offer);
        }
        let moved = cluster.neighbours().welcome(&worker.session, node);
        if moved {
            self.post_all(&Message::SessionLost(worker.session.clone()));
        }
        self.matched(offer, worker);
    }

    /// Another node passes an offer on, and is told what came of it, whoever serves the shard by now.
    fn lend(&self, node: &str, offer: Offer) {
        for output in self.ask_queues(QueueMessage::Borrow(offer), Some(node)) {
            match output {
                QueueOutput::Match(offer, worker) => self.tell_match(node, offer, worker),
                other => self.pass_on(other),
            }
        }
    }

    fn tell_match(&self, node: &str, offer: Offer, worker: Worker) {
        let Some(cluster) = &self.cluster else { return };
        cluster.neighbours().lent(node, offer.clone(), worker.clone());
        let (run, work, session) = (offer.run, offer.work, worker.session.clone());
        let told = self.send(node, PeerMessage::Matched(offer.clone(), worker.clone()));
        if !told && cluster.neighbours().settle(node, run, work, &session) {
            self.queue(QueueMessage::Unmatched(offer, worker));
        }
    }

    /// Passes an offer on to another node, and keeps it until that has answered.
    pub(crate) fn pass(&self, node: &str, offer: Offer) {
        let Some(cluster) = &self.cluster else { return };
        cluster.neighbours().passed(node, offer.clone());
        if !self.send(node, PeerMessage::Offer(offer.clone())) {
            cluster.neighbours().answered(node, &offer);
            self.declined(node, offer);
        }
    }

    /// Nobody at the node takes the work, which has not moved meanwhile.
    fn declined(&self, node: &str, offer: Offer) {
        if self.serves(offer.shard) {
            self.queue(QueueMessage::Declined { node: node.to_owned(), offer });
        }
    }

    /// The work has nobody yet, and has not moved meanwhile.
    fn offer_again(&self, offer: Offer) {
        if self.serves(offer.shard) {
            self.queue(QueueMessage::Offer(offer));
        }
    }

    /// A node sends work for a worker here. Work that was not waited for, because the match was given
    /// up with a link, or for a worker that has gone, goes back with all else that the worker has.
    fn take(&self, node: &str, worker: Worker, dispatch: Dispatch) {
        let Some(cluster) = &self.cluster else { return };
        let (run, work) = Work::of(&dispatch);
        let session = worker.session;
        // Work that comes without having been offered needs no credit.
        let eager = matches!(dispatch, Dispatch::Activity { eager: true, .. });
        let expected = eager || cluster.neighbours().settle(node, run, work, &session);
        if expected && self.give(&session, dispatch) {
            return;
        }
        let shards = cluster.neighbours().shards_of(node);
        self.send(node, PeerMessage::SessionLost(session.clone()));
        self.reintroduce(node, &session);
        self.ask_one_for_attempts(&session, &shards);
    }

    /// A worker that the other node was told to forget is still here.
    fn reintroduce(&self, node: &str, session: &SessionId) {
        if self.connected(session) {
            self.send(node, PeerMessage::SessionCame(session.clone()));
        }
    }

    /// There is a link to another node, new or anew.
    pub(crate) fn reached_node(&self, node: &str) {
        let Some(cluster) = &self.cluster else { return };
        loop {
            let early = cluster.neighbours().linked(node);
            if early.is_empty() {
                break;
            }
            self.lent(node, early);
        }
        self.meet_again(node);
    }

    /// Another node has credit to lend.
    fn lent(&self, node: &str, spare: impl IntoIterator<Item = Spare>) {
        for Spare { queue, build, credits } in spare {
            let node = node.to_owned();
            self.queue(QueueMessage::Lent { node, queue, build, credits });
        }
    }

    /// The link to another node is gone.
    pub(crate) fn missed_node(&self, node: &str) {
        if let Some(cluster) = &self.cluster {
            cluster.neighbours().unlinked(node);
        }
        self.lost_node(node);
    }

    /// There is a link from another node, new or anew: what it said before may be lost.
    pub(crate) fn called_by_node(&self, node: &str) {
        self.lost_node(node);
        self.meet_again(node);
    }

    /// Says again what the other node must know, and what may be lost. It has forgotten which workers are
    /// connected here, whichever link is new; who presents its attempts must be known before.
    fn meet_again(&self, node: &str) {
        let Some(cluster) = &self.cluster else { return };
        for session in self.sessions() {
            self.send(node, PeerMessage::SessionCame(session));
        }
        let open = self.open_shards();
        if !open.is_empty() {
            self.send(node, PeerMessage::Opened(open));
        }
        let theirs: BTreeSet<_> = cluster.neighbours().shards_of(node);
        if !theirs.is_empty() {
            self.post_all(&Message::SendAgain(theirs));
        }
        self.queue(QueueMessage::NodeCame);
    }

    /// A link to or from another node is gone: what was under way is given up, its workers have lost
    /// what they have of the shards here, until they present it.
    pub(crate) fn lost_node(&self, node: &str) {
        let Some(cluster) = &self.cluster else { return };
        self.queue(QueueMessage::NodeGone(node.to_owned()));
        let Lost { workers, offers, lent } = cluster.neighbours().lose(node);
        for session in workers {
            self.post_all(&Message::SessionLost(session));
        }
        for offer in offers {
            self.offer_again(offer);
        }
        for (offer, worker) in lent {
            self.queue(QueueMessage::Unmatched(offer, worker));
        }
    }

    /// Tells a shard that is served here; what is meant for none is dropped.
    fn tell_shard(&self, shard: ShardId, message: PeerMessage) {
        let message = match message {
            PeerMessage::Deliver(_, envelope) => Message::Deliver(envelope),
            PeerMessage::Answered(_, key, answer) => Message::Answered(key, answer),
            PeerMessage::Confirmed(_, key) => Message::Confirmed(key),
            PeerMessage::Spare { .. }
            | PeerMessage::Declined(_)
            | PeerMessage::Offer(_)
            | PeerMessage::Matched(..)
            | PeerMessage::Unmatched(..)
            | PeerMessage::Dispatch(..)
            | PeerMessage::SessionCame(_)
            | PeerMessage::SessionLost(_)
            | PeerMessage::Opened(_)
            | PeerMessage::NewBuild(..)
            | PeerMessage::Look => return,
        };
        // Whoever sent it sends it again when the shard is in memory elsewhere.
        drop(self.post(shard, Post::Message(message)));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, Mutex},
        time::Duration,
    };

    use abide_core::{
        call::{Call, CallError, CallReply, QueueKey, RunTarget, WorkKind},
        ids::WorkflowKey,
        limits::Limits,
        run::Description,
    };
    use abide_shard::lease::LeaseOptions;
    use abide_store::memory::MemoryStore;

    use super::*;
    use crate::{
        clock::SystemClock,
        cluster::Membership,
        peers::{PeerAnswer, Peers},
    };

    /// Links to whom it may concern, which keep what was said.
    #[derive(Default)]
    struct Said(Mutex<Vec<String>>);

    impl Said {
        fn take(&self) -> Vec<String> {
            std::mem::take(&mut *self.0.lock().unwrap())
        }
    }

    impl Peers for Said {
        fn keep(&self, _: BTreeSet<String>) {}

        fn call(&self, _: &str, _: Call) -> PeerAnswer<CallReply> {
            Box::pin(async { Err(CallError::NotServed) })
        }

        fn describe(&self, _: &str, _: RunTarget) -> PeerAnswer<Description> {
            Box::pin(async { Err(CallError::NotServed) })
        }

        fn send(&self, node: &str, message: PeerMessage) -> bool {
            let what = match message {
                PeerMessage::Offer(offer) => format!("offer {}", offer.workflow.workflow),
                PeerMessage::Unmatched(_, worker) => format!("unmatched {}", worker.session),
                PeerMessage::SessionCame(session) => format!("came {session}"),
                PeerMessage::SessionLost(session) => format!("lost {session}"),
                other => format!("{other:?}"),
            };
            self.0.lock().unwrap().push(format!("{node}: {what}"));
            true
        }
    }

    /// A node, and what it says to the other one, which is called `far`.
    fn node() -> (Node, Arc<Said>) {
        let said = Arc::<Said>::default();
        let lease = LeaseOptions {
            node: "near".into(),
            incarnation: 1,
            address: "near".into(),
            lease: Duration::from_secs(5),
        };
        let peers = Arc::clone(&said) as Arc<dyn Peers>;
        let membership = Membership { lease, peers };
        let store = Arc::new(MemoryStore::default());
        let (clock, limits) = (Arc::new(SystemClock), Limits::default());
        let node = Node::new(store, clock, limits, "near".into(), 1, Some(&membership));
        let nodes = ["near".to_owned(), "far".into()].into();
        node.cluster.as_ref().unwrap().neighbours().read(
            &Default::default(),
            &nodes,
            Duration::ZERO,
        );
        node.reached_node("far");
        (node, said)
    }

    fn queue() -> QueueKey {
        QueueKey { namespace: "default".into(), queue: "queue".into(), kind: WorkKind::Workflow }
    }

    fn offer(workflow: &str, shard: ShardId) -> Offer {
        let workflow = WorkflowKey { namespace: "default".into(), workflow: workflow.into() };
        Offer {
            queue: queue(),
            shard,
            workflow,
            run: abide_core::ids::RunId::MIN,
            work: Work::Workflow,
            prefer: None,
            except: BTreeSet::new(),
        }
    }

    /// Else the next work waits here for ever, though the other node has workers for it.
    #[test]
    fn what_a_node_lends_is_not_forgotten_when_one_of_its_workers_has_moved() {
        let (node, said) = node();
        let shard = ShardId::new(1).unwrap();
        let _posts = node.serve(shard);
        node.hear("far", PeerMessage::Spare { queue: queue(), build: None, credits: 3 });
        node.queue(QueueMessage::Offer(offer("a", shard)));
        assert_eq!(said.take(), ["far: offer a"]);
        let (_, _stream) = node.connect(&"mover".into());
        assert_eq!(said.take(), ["far: came mover"]);
        let mover = Worker { session: "mover".into(), identity: "mover".into(), build: None };
        node.hear("far", PeerMessage::Matched(offer("a", shard), mover));
        assert_eq!(said.take(), ["far: unmatched mover", "far: offer a"]);
        node.queue(QueueMessage::Offer(offer("b", shard)));
        assert_eq!(said.take(), ["far: offer b"], "one credit was not used");
    }

    /// A node that could not reach this one for a moment has forgotten its workers, and must hear of
    /// their end.
    #[test]
    fn who_begins_a_link_is_told_of_the_workers_that_are_here() {
        let (node, said) = node();
        let (stream, _given) = node.connect(&"worker".into());
        said.take();
        node.called_by_node("far");
        assert_eq!(said.take(), ["far: came worker"]);
        node.disconnect(&"worker".into(), stream);
        assert_eq!(said.take(), ["far: lost worker"]);
    }
}
