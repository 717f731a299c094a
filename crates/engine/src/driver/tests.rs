//! A driver whose node woke up after its lease was over, before the lease has looked at the clock.

use std::{
    collections::{BTreeSet, VecDeque},
    future::ready,
    task::{Context, Poll, Waker},
    time::Duration,
};

use abide_core::{
    dispatch::{Given, QueueKey, WorkKind, Worker},
    event::RunSpec,
    ids::{RunId, WorkflowKey},
    limits::Limits,
    operation::{AnyAnswer, ConflictPolicy, RunOperation, Start},
    report::{Report, ReportAnswer},
};
use abide_shard::{
    lease::LeaseOptions,
    message::{Offer, Work},
};
use abide_store::memory::MemoryStore;
use tokio::sync::oneshot;

use super::*;
use crate::{
    clock::{Clock, SystemClock},
    cluster::Membership,
    peers::{PeerAnswer, PeerMessage, Peers},
};

/// Nobody is reached.
struct Nobody;

impl Peers for Nobody {
    fn keep(&self, _nodes: BTreeSet<String>) {}

    fn ask(&self, _node: &str, _operation: Box<RunOperation>) -> PeerAnswer<AnyAnswer> {
        Box::pin(ready(Err(CallError::NotServed)))
    }

    fn report(&self, _node: &str, _report: Report) -> PeerAnswer<ReportAnswer> {
        Box::pin(ready(Err(CallError::NotServed)))
    }

    fn send(&self, _node: &str, _message: PeerMessage) {}
}

/// A node of a cluster that has no lease yet, or none any more.
fn node_without_lease() -> Node {
    let lease = LeaseOptions {
        node: "zombie".into(),
        incarnation: 1,
        address: "zombie:7233".into(),
        lease: Duration::from_secs(5),
    };
    let membership = Membership { lease, peers: Arc::new(Nobody) };
    let (store, clock) =
        (Arc::new(MemoryStore::default()), Arc::new(SystemClock) as Arc<dyn Clock>);
    let (sender, _) = mpsc::unbounded_channel();
    Node::new(store, (clock, Limits::default()), "zombie".into(), 1, Some(&membership), sender)
}

fn start(workflow: &WorkflowKey) -> Start {
    Start {
        workflow: workflow.clone(),
        spec: RunSpec {
            workflow_type: "hello".into(),
            queue: "queue".into(),
            ..RunSpec::default()
        },
        identity: "test".into(),
        key: None,
        conflict: ConflictPolicy::Reject,
        reuse: Default::default(),
        begin: Default::default(),
        signal: None,
        update: None,
    }
}

#[tokio::test]
async fn a_node_whose_lease_is_over_gives_nothing_out_and_its_worker_keeps_its_credit() {
    let node = Arc::new(node_without_lease());
    let workflow = WorkflowKey { namespace: "default".into(), workflow: "run".into() };
    let run = RunId::from_parts(node.clock.now(), 1);
    let shard = workflow.slot().shard();
    let queue =
        QueueKey { namespace: "default".into(), queue: "queue".into(), kind: WorkKind::Workflow };
    let worker = Worker { session: "one".into(), identity: "one".into(), build: None };
    let (stream, mut given) = node.connect(worker.session.clone(), None);
    let credit = (queue.clone(), worker.clone());
    node.tell(NodeInput::Credit { stream, queue: credit.0, worker: credit.1, credits: 1 });

    let (sender, mut ended) = mpsc::unbounded_channel();
    let (driver, posts) = Driver::new(Arc::clone(&node), sender);
    node.serve(shard, posts);
    let driver = tokio::spawn(driver.run());
    let (answer, reply) = oneshot::channel();
    node.post(shard, Post::Ask(1, Box::new(start(&workflow).into()), answer));
    assert_eq!(ended.recv().await, Some(shard), "the shard closes by itself");
    driver.abort();

    let (reply, _) = reply.await.expect("the caller is told");
    assert!(matches!(reply, Err(CallError::Reset)), "{reply:?}");
    let mut context = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some((given, _))) = given.poll_next(&mut context) {
        assert!(!matches!(given, Given::Work(_)), "{given:?}");
    }
    let (work, except) = (Work::Workflow, BTreeSet::new());
    let offer = Offer { queue, shard, workflow, run, work, prefer: None, except };
    let mut matched = VecDeque::new();
    node.tell(NodeInput::Serve(shard));
    node.offer(offer.clone(), &mut matched);
    let matched = matched.pop_front();
    assert!(
        matches!(&matched, Some(Message::Matched(work, taker)) if *work == offer && *taker == worker),
        "{matched:?}"
    );
}
