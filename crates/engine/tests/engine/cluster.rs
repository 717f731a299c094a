//! Several engines on one store: each serves its share of the shards, any of them takes any call, and
//! a worker at one of them gets work of all.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use abide_core::{
    call::{Call, CallError, CallReply, RunTarget},
    event::SignalReceived,
    program::Node,
    run::{Close, Description},
};
use abide_engine::{
    Engine, LeaseOptions, Membership, Options,
    peers::{PeerAnswer, PeerMessage, Peers},
};
use abide_store::{Store, memory::MemoryStore};

use crate::support::{
    Programs, activity, connect, programs, repeat, start_call, target, wait_for_waits, work,
    workflow,
};

/// Wires between engines of one process, by their addresses.
#[derive(Default)]
struct Wires(Mutex<BTreeMap<String, Weak<Engine>>>);

impl Wires {
    fn engine(&self, node: &str) -> Option<Arc<Engine>> {
        self.0.lock().expect("no test panicked").get(node)?.upgrade()
    }
}

/// The end of the wires at one node.
struct Plug {
    own: String,
    wires: Arc<Wires>,
    linked: Mutex<BTreeSet<String>>,
}

impl Peers for Plug {
    fn keep(&self, nodes: BTreeSet<String>) {
        let before =
            std::mem::replace(&mut *self.linked.lock().expect("no test panicked"), nodes.clone());
        let Some(own) = self.wires.engine(&self.own) else { return };
        for node in before.difference(&nodes) {
            own.unlinked(node);
        }
        for node in nodes.difference(&before) {
            own.linked(node);
        }
    }

    fn call(&self, node: &str, call: Call) -> PeerAnswer<CallReply> {
        let engine = self.wires.engine(node);
        Box::pin(async move { engine.ok_or(CallError::NotServed)?.call_here(call).await })
    }

    fn describe(&self, node: &str, target: RunTarget) -> PeerAnswer<Description> {
        let engine = self.wires.engine(node);
        Box::pin(async move { engine.ok_or(CallError::NotServed)?.describe_here(target).await })
    }

    fn send(&self, node: &str, message: PeerMessage) {
        if let Some(engine) = self.wires.engine(node) {
            engine.hear(&self.own, message);
        }
    }
}

/// A few engines on one store.
struct Cluster {
    store: Arc<MemoryStore>,
    wires: Arc<Wires>,
    engines: Vec<Arc<Engine>>,
}

impl Cluster {
    async fn of(count: usize) -> Self {
        let (store, wires) = (Arc::new(MemoryStore::default()), Arc::<Wires>::default());
        let mut cluster = Self { store, wires, engines: Vec::new() };
        for _ in 0..count {
            cluster.join().await;
        }
        cluster
    }

    /// One more engine.
    async fn join(&mut self) {
        let address = format!("node-{}", self.engines.len());
        let wires = Arc::clone(&self.wires);
        let linked = Mutex::default();
        let lease = LeaseOptions {
            node: address.clone(),
            incarnation: 1,
            address: address.clone(),
            lease: Duration::from_millis(300),
        };
        let peers = Arc::new(Plug { own: address.clone(), wires, linked });
        let membership = Some(Membership { lease, peers });
        let options = Options { name: address.clone(), membership, ..Options::default() };
        let store = Arc::clone(&self.store) as Arc<dyn Store>;
        let engine = Arc::new(Engine::start(store, options));
        self.wires.0.lock().expect("no test panicked").insert(address, Arc::downgrade(&engine));
        engine.ready().await;
        self.engines.push(engine);
    }

    /// The newest engine dies without a word; its lease stays in the store.
    fn kill_newest(&mut self) {
        let newest = self.engines.pop().expect("an engine");
        assert_eq!(Arc::strong_count(&newest), 1, "nobody keeps it");
    }
}

async fn insist(engine: &Engine, call: Call) -> CallReply {
    repeat(engine, call).await.expect("it is taken")
}

async fn start(engine: &Engine, id: &str, workflow_type: &str) {
    insist(engine, Call::Start(Box::new(start_call(engine, id, workflow_type)))).await;
}

async fn closed(engine: &Engine, id: &str) -> Close {
    match insist(engine, Call::AwaitClose(target(id))).await {
        CallReply::Closed { how, .. } => how,
        other => panic!("not closed: {other:?}"),
    }
}

fn work_at(engine: &Arc<Engine>, session: &str, programs: &Programs) {
    tokio::spawn(work(Arc::clone(engine), connect(engine, session), Arc::clone(programs)));
}

#[tokio::test]
async fn a_worker_at_one_node_gets_the_work_of_all() {
    let cluster = Cluster::of(3).await;
    let programs = programs([
        ("parent", vec![activity("greet"), Node::child("child"), Node::signal("go")]),
        ("child", vec![activity("work")]),
    ]);
    work_at(&cluster.engines[1], "one", &programs);
    for n in 0..30 {
        start(&cluster.engines[n % 3], &format!("family-{n}"), "parent").await;
    }
    for n in 0..30 {
        let signal = SignalReceived { name: "go".into(), ..SignalReceived::default() };
        let call = Call::Signal(target(&format!("family-{n}")), signal, Default::default());
        insist(&cluster.engines[(n + 1) % 3], call).await;
    }
    for n in 0..30 {
        let how = closed(&cluster.engines[(n + 2) % 3], &format!("family-{n}")).await;
        assert_eq!(how, Close::Completed, "family-{n}");
    }
    let described = cluster.engines[0].describe(target("family-7")).await.expect("it is shown");
    assert_eq!(described.workflow, workflow("family-7"));
}

#[tokio::test]
async fn a_node_that_leaves_hands_over_and_nobody_waits_for_its_lease() {
    let mut cluster = Cluster::of(2).await;
    let programs = programs([("patient", vec![Node::signal("go"), activity("work")])]);
    for n in 0..20 {
        start(&cluster.engines[0], &format!("run-{n}"), "patient").await;
    }
    work_at(&cluster.engines[0], "one", &programs);
    wait_for_waits(&cluster.engines[0], 10).await;
    let leaving = cluster.engines.pop().expect("two");
    leaving.shutdown().await;
    for n in 0..20 {
        let signal = SignalReceived { name: "go".into(), ..SignalReceived::default() };
        let call = Call::Signal(target(&format!("run-{n}")), signal, Default::default());
        insist(&cluster.engines[0], call).await;
        assert_eq!(closed(&cluster.engines[0], &format!("run-{n}")).await, Close::Completed);
    }
}

#[tokio::test]
async fn the_shards_of_a_dead_node_are_taken_over_with_their_timers() {
    let mut cluster = Cluster::of(2).await;
    let sleep = Node::Sleep(Duration::from_millis(400));
    let programs = programs([("sleeper", vec![sleep, activity("work")])]);
    work_at(&cluster.engines[0], "one", &programs);
    for n in 0..20 {
        start(&cluster.engines[0], &format!("run-{n}"), "sleeper").await;
    }
    cluster.kill_newest();
    for n in 0..20 {
        assert_eq!(closed(&cluster.engines[0], &format!("run-{n}")).await, Close::Completed);
    }
}
