//! Several engines in one process, connected by links that deliver in order and can be cut in one
//! direction at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use abide_core::{
    limits::Limits,
    operation::{AnyAnswer, CallError, RunOperation},
    report::{Report, ReportAnswer},
};
use abide_engine::{
    Engine, LeaseOptions, Membership, Options,
    peers::{PeerAnswer, PeerMessage, Peers},
};
use abide_store::{Store, memory::MemoryStore};
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
};

use crate::cable::Cable;

/// Lease of the test nodes, long enough for a busy machine.
const LEASE: Duration = Duration::from_secs(2);

/// Effectively infinite, so that a test hangs if anything waits for a timeout instead of a lost link.
const NEVER: Duration = Duration::from_secs(1_000_000);

/// The engines by address.
#[derive(Default)]
struct Switchboard(Mutex<BTreeMap<String, Weak<Engine>>>);

impl Switchboard {
    fn connect(&self, node: String, engine: &Arc<Engine>) {
        self.0.lock().expect("no test panicked").insert(node, Arc::downgrade(engine));
    }

    fn engine(&self, node: &str) -> Option<Arc<Engine>> {
        self.0.lock().expect("no test panicked").get(node)?.upgrade()
    }
}

/// The links of one node.
struct Plug {
    own: String,
    switchboard: Arc<Switchboard>,
    links: Mutex<BTreeMap<String, Link>>,
    /// Unreachable nodes.
    cut: Mutex<BTreeSet<String>>,
    /// The other nodes answer no calls for now.
    silent: watch::Sender<bool>,
}

/// A link to one node. Messages arrive in order; messages in flight are lost when the link breaks.
struct Link {
    say: mpsc::UnboundedSender<PeerMessage>,
    carrier: AbortHandle,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.carrier.abort();
    }
}

impl Plug {
    /// Opens a link, and notifies both ends.
    fn begin(&self, node: &str) {
        let ends = (self.switchboard.engine(&self.own), self.switchboard.engine(node));
        let (Some(own), Some(other)) = ends else { return };
        if self.cut.lock().expect("no test panicked").contains(node) {
            return;
        }
        let (say, mut said) = mpsc::unbounded_channel();
        let name = self.own.clone();
        other.called(&name);
        let other = Arc::downgrade(&other);
        let carrier = tokio::spawn(async move {
            while let Some(message) = said.recv().await {
                let Some(other) = other.upgrade() else { return };
                other.receive(&name, message);
            }
        });
        let link = Link { say, carrier: carrier.abort_handle() };
        self.links.lock().expect("no test panicked").insert(node.to_owned(), link);
        own.linked(node);
    }

    fn end(&self, node: &str) {
        let ended = self.links.lock().expect("no test panicked").remove(node);
        if let Some(own) = self.switchboard.engine(&self.own).filter(|_| ended.is_some()) {
            own.unlinked(node);
        }
    }

    fn reachable(&self, node: &str) -> Option<Arc<Engine>> {
        let linked = self.links.lock().expect("no test panicked").contains_key(node);
        self.switchboard.engine(node).filter(|_| linked)
    }
}

impl Peers for Plug {
    fn keep(&self, nodes: BTreeSet<String>) {
        let before: BTreeSet<_> =
            self.links.lock().expect("no test panicked").keys().cloned().collect();
        for node in before.difference(&nodes) {
            self.end(node);
        }
        for node in nodes.difference(&before) {
            self.begin(node);
        }
    }

    fn ask(&self, node: &str, operation: Box<RunOperation>) -> PeerAnswer<AnyAnswer> {
        let engine = self.reachable(node);
        let mut silent = self.silent.subscribe();
        Box::pin(async move {
            let _ = silent.wait_for(|silent| !silent).await;
            engine.ok_or(CallError::NotServed)?.ask_here(operation).await
        })
    }

    fn report(&self, node: &str, report: Report) -> PeerAnswer<ReportAnswer> {
        let engine = self.reachable(node);
        Box::pin(async move { engine.ok_or(CallError::NotServed)?.report_here(report).await })
    }

    fn send(&self, node: &str, message: PeerMessage) {
        let links = self.links.lock().expect("no test panicked");
        if let Some(link) = links.get(node) {
            drop(link.say.send(message));
        }
    }
}

/// A few engines on one store.
pub(crate) struct Cluster {
    store: Arc<MemoryStore>,
    switchboard: Arc<Switchboard>,
    pub(crate) engines: Vec<Arc<Engine>>,
    /// The connections of the engines to the store.
    pub(crate) cables: Vec<Arc<Cable>>,
    plugs: Vec<Arc<Plug>>,
    started: u64,
}

impl Cluster {
    pub(crate) async fn of(count: usize) -> Self {
        let (store, switchboard) = (Arc::default(), Arc::default());
        let (engines, cables, plugs) = (Vec::new(), Vec::new(), Vec::new());
        let mut cluster = Self { store, switchboard, engines, cables, plugs, started: 0 };
        for _ in 0..count {
            cluster.join().await;
        }
        cluster
    }

    /// Starts another engine, and waits until it owns its share of the shards.
    pub(crate) async fn join(&mut self) {
        let address = format!("node-{}", self.engines.len());
        self.started += 1;
        let lease = LeaseOptions {
            node: address.clone(),
            incarnation: self.started,
            address: address.clone(),
            lease: LEASE,
        };
        let plug = Arc::new(Plug {
            own: address.clone(),
            switchboard: Arc::clone(&self.switchboard),
            links: Mutex::default(),
            cut: Mutex::default(),
            silent: watch::Sender::new(false),
        });
        let peers = Arc::clone(&plug) as Arc<dyn Peers>;
        let membership = Some(Membership { lease, peers });
        let limits = Limits {
            effect_timeout: NEVER,
            task_timeout: NEVER,
            // The test workers present no attempts: one that did not reach them is lost after this.
            session_grace: LEASE / 20,
            ..Limits::default()
        };
        let options = Options { name: address.clone(), limits, membership, ..Options::default() };
        let cable = Arc::new(Cable::new(&self.store));
        let store = Arc::clone(&cable) as Arc<dyn Store>;
        let engine = Arc::new(Engine::start(store, options));
        self.switchboard.connect(address, &engine);
        engine.ready().await;
        self.engines.push(engine);
        self.cables.push(cable);
        self.plugs.push(plug);
    }

    /// Kills the newest engine; its lease stays in the store.
    pub(crate) fn kill_newest(&mut self) {
        let newest = self.engines.pop().expect("an engine");
        assert_eq!(Arc::strong_count(&newest), 1, "nobody keeps it");
        drop(newest);
        self.cables.pop();
        let dead = self.plugs.pop().expect("its plug");
        for plug in &self.plugs {
            plug.end(&dead.own);
        }
    }

    /// Shuts down the newest engine gracefully: it hands over its shards.
    pub(crate) async fn leave_newest(&mut self) {
        self.engines.last().expect("an engine").shutdown().await;
        self.engines.pop();
        self.cables.pop();
        self.plugs.pop();
    }

    /// Whether the other nodes let this one wait for answers.
    pub(crate) fn silence(&self, asking: usize, silent: bool) {
        self.plugs[asking].silent.send_replace(silent);
    }

    /// From now on, messages from one node to another are lost.
    pub(crate) fn cut(&self, from: usize, to: usize) {
        let node = self.plugs[to].own.clone();
        self.plugs[from].cut.lock().expect("no test panicked").insert(node.clone());
        self.plugs[from].end(&node);
    }

    /// Restores the link.
    pub(crate) fn mend(&self, from: usize, to: usize) {
        let node = &self.plugs[to].own;
        self.plugs[from].cut.lock().expect("no test panicked").remove(node);
        self.plugs[from].begin(node);
    }
}
