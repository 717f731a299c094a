//! What all parts of one engine share: the store, the clock, the channel to each shard, and the
//! node machine behind one lock. The outputs of an input are carried out in order before the lock
//! is released.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use abide_core::{
    dispatch::{Given, WorkKind},
    ids::{SessionId, ShardId},
    limits::Limits,
    operation::{AnyAnswer, CallError, RunOperation, Ticket},
    report::{Report, ReportAnswer},
    time::Timestamp,
};
use abide_shard::{
    borders::Borders,
    lease::{Lease, LeaseMessage},
    message::{Halt, Message, Notice, Offer},
    node::{Node as Machine, NodeInput, NodeOutput},
};
use abide_store::{ReadError, Store};
use tokio::sync::{
    Semaphore,
    mpsc::{self, error::SendError},
    oneshot, watch,
};

use crate::{
    batch::Driven,
    clock::{Clock, Steps, since_boot},
    cluster::{Cluster, Membership},
    driver::Posted,
    figures::{Counters, Figures, StoreFault},
    gauge::{Gauge, InFlight},
    health::{Health, Watch},
    lock::lock,
    outbox::{self, Account, Inbox, Outbox},
    route::RouteReplies,
};

/// The reply channel of a call. The answer counts as in flight until the caller has it.
pub(crate) type ReplySender<T> = oneshot::Sender<(Result<T, CallError>, InFlight)>;

/// An input of a shard's driver.
#[derive(Debug)]
pub(crate) enum Post {
    /// A message for the shard machine.
    Message(Message),
    /// An operation, with its reply channel.
    Ask(Ticket, Box<RunOperation>, ReplySender<AnyAnswer>),
    /// A worker's report, with its reply channel.
    Report(Ticket, Box<Report>, ReplySender<ReportAnswer>),
    /// The caller has disconnected: no answer is needed.
    Forget(Ticket),
}

/// Runs that are loaded at the same time, over all shards. Each takes memory while its log is read, and
/// a client can send one small message to each of very many large runs.
const LOADS: usize = 8;

/// Reads for counts and tallies that are in flight at the same time.
const COUNTING: usize = 8;

/// Two clocks read within this time can be compared: it is far less than a clock step.
const COMPARABLE: Duration = Duration::from_millis(100);

/// Channels to the drivers of shards.
type Mailboxes = BTreeMap<ShardId, mpsc::UnboundedSender<Posted>>;

/// What all parts of one engine share.
pub(crate) struct Node {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) borders: Arc<Borders>,
    /// Permits for loading runs.
    pub(crate) loads: Arc<Semaphore>,
    /// Permits for reads that count; never closed.
    pub(crate) counting: Semaphore,
    /// The node's name; stays the same after a restart.
    pub(crate) name: String,
    /// Owner name in the shards' rows: unique per process, even for processes of the same node.
    pub(crate) owner: String,
    pub(crate) gauge: Gauge,
    pub(crate) counters: Counters,
    /// Current problems, for [`Health`].
    pub(crate) watch: Watch,
    /// The batches that this process carries out.
    pub(crate) driven: Driven,
    /// The cluster; none if the node is alone.
    pub(crate) cluster: Option<Cluster>,
    /// Channel to the driver of the lease.
    lease: mpsc::UnboundedSender<LeaseMessage>,
    /// Of the shards that this node serves.
    shards: RwLock<Mailboxes>,
    state: Mutex<NodeMachine>,
    streams_opened: AtomicU64,
    arrival: watch::Sender<ShardsOpened>,
    /// Why the engine can no longer serve all of its shards.
    failed: watch::Sender<Option<String>>,
}

/// The node machine, and the calls that wait for its routing decisions.
struct NodeMachine {
    machine: Machine<Outbox>,
    routes: RouteReplies,
}

/// Collects matches of work that a shard has just offered, for its driver to handle at once.
struct Own<'a> {
    shard: ShardId,
    messages: &'a mut VecDeque<Message>,
}

impl Node {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        (clock, limits): (Arc<dyn Clock>, Limits),
        name: String,
        incarnation: u64,
        membership: Option<&Membership>,
        lease: mpsc::UnboundedSender<LeaseMessage>,
    ) -> Self {
        let address = membership.map(|membership| membership.lease.address.clone());
        let patience = membership.map(|membership| membership.lease.patience());
        let machine =
            Machine::new(address.unwrap_or_default(), &limits, patience.unwrap_or_default());
        Self {
            store,
            gauge: Gauge::new(clock.moved_by_hand()),
            counters: Counters::default(),
            watch: Watch::default(),
            clock,
            limits: Arc::new(limits),
            borders: Arc::default(),
            loads: Arc::new(Semaphore::new(LOADS)),
            counting: Semaphore::new(COUNTING),
            owner: format!("{name}#{incarnation:016x}"),
            name,
            driven: Driven::default(),
            cluster: membership.map(Cluster::new),
            lease,
            shards: RwLock::default(),
            state: Mutex::new(NodeMachine { machine, routes: RouteReplies::default() }),
            streams_opened: AtomicU64::default(),
            arrival: watch::Sender::default(),
            failed: watch::Sender::new(None),
        }
    }

    /// Sets which commands between namespaces are allowed.
    pub(crate) fn with_borders(mut self, borders: Borders) -> Self {
        self.borders = Arc::new(borders);
        self
    }

    /// Feeds an input to the node machine.
    pub(crate) fn tell(&self, input: NodeInput<Outbox>) {
        self.step(input, None, |_| {});
    }

    /// A shard offers work. A match is appended to `matched` directly, without the shard's channel.
    pub(crate) fn offer(&self, offer: Offer, matched: &mut VecDeque<Message>) {
        let own = Own { shard: offer.shard, messages: matched };
        self.step(NodeInput::Offer(offer), Some(own), |_| {});
    }

    /// Feeds an input about a call; `wait` changes the waiting calls under the same lock.
    pub(crate) fn tell_of_call(
        &self,
        input: NodeInput<Outbox>,
        wait: impl FnOnce(&mut RouteReplies),
    ) {
        self.step(input, None, wait);
    }

    /// Time until the machine wants a tick.
    pub(crate) fn until_tick(&self) -> Option<Duration> {
        let wake_at = lock(&self.state).machine.wake_at();
        wake_at.map(|at| at.saturating_sub(since_boot()))
    }

    /// Feeds an input to the machine and carries out its outputs before the lock is released; none
    /// of them blocks. Links are changed after that, because closing one calls back at once.
    fn step(
        &self,
        input: NodeInput<Outbox>,
        mut own: Option<Own<'_>>,
        wait: impl FnOnce(&mut RouteReplies),
    ) {
        // A node that is alone sets no times.
        let now = self.cluster.as_ref().map_or(Duration::ZERO, |_| since_boot());
        let mut links = None;
        let mut state = self.state.try_lock().unwrap_or_else(|_| {
            self.counters.node_waits.add(1);
            lock(&self.state)
        });
        let NodeMachine { machine, routes } = &mut *state;
        wait(routes);
        machine.handle(now, input);
        while let Some(output) = machine.poll() {
            match output {
                NodeOutput::ToShard(shard, message) => match &mut own {
                    Some(own) if own.shard == shard => own.messages.push_back(message),
                    _ => {
                        let refused = self.post(shard, Post::Message(message));
                        if let Some(Post::Message(message)) = refused {
                            machine.handle(now, NodeInput::Undelivered(shard, message));
                        }
                    }
                },
                NodeOutput::TryHere(..) | NodeOutput::Forward(..) | NodeOutput::Refuse(..) => {
                    routes.show(output);
                }
                NodeOutput::ToWorker(outbox, given) => {
                    let work = matches!(given, Given::Work(_));
                    // The machine learns about the end of a stream before its receiver is dropped.
                    let sent = outbox.send(given, self.gauge.begin());
                    self.counters.given.add(u64::from(work && sent));
                    if let Some((session, stream)) = outbox.holds() {
                        machine.handle(now, NodeInput::Hold { session, stream });
                    }
                }
                NodeOutput::KeepLinks(nodes) => links = Some(nodes),
                other => self.carry_out(other),
            }
        }
        drop(state);
        if let (Some(cluster), Some(links)) = (&self.cluster, links) {
            cluster.peers.keep(links);
        }
    }

    /// Carries out the outputs that cause no further input.
    fn carry_out(&self, output: NodeOutput<Outbox>) {
        match output {
            NodeOutput::ToShards(message) => self.post_all(&message),
            NodeOutput::ToPeer(node, message) => {
                if let Some(cluster) = &self.cluster {
                    cluster.peers.send(&node, message);
                }
            }
            NodeOutput::EndStream(stream) => drop(stream),
            // Sending fails only if the node has left.
            NodeOutput::Look => drop(self.lease.send(LeaseMessage::Look)),
            NodeOutput::ToShard(..)
            | NodeOutput::ToWorker(..)
            | NodeOutput::KeepLinks(_)
            | NodeOutput::TryHere(..)
            | NodeOutput::Forward(..)
            | NodeOutput::Refuse(..) => {}
        }
    }

    /// Starts serving a shard with the driver that has this channel.
    pub(crate) fn serve(&self, shard: ShardId, driver: mpsc::UnboundedSender<Posted>) {
        self.arrival.send_modify(|arrival| {
            arrival.unopened.insert(shard);
        });
        // The driver turns away what comes before this. Sending fails only if it has panicked.
        drop(driver.send((shard, Post::Message(Message::Open), self.gauge.begin())));
        self.shards_mut().insert(shard, driver);
        self.tell(NodeInput::Serve(shard));
    }

    /// A poisoned lock can be used, as in [`lock`].
    fn shards(&self) -> RwLockReadGuard<'_, Mailboxes> {
        self.shards.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn shards_mut(&self) -> RwLockWriteGuard<'_, Mailboxes> {
        self.shards.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops serving a shard.
    pub(crate) fn release(&self, shard: ShardId) {
        self.watch.released(shard);
        self.shards_mut().remove(&shard);
        self.tell(NodeInput::Released(shard));
        self.settled_in(shard);
    }

    /// A shard whose driver has ended.
    pub(crate) fn without_driver(&self) -> Option<ShardId> {
        let ended = |(_, driver): &(&ShardId, &mpsc::UnboundedSender<Posted>)| driver.is_closed();
        self.shards().iter().find(ended).map(|(shard, _)| *shard)
    }

    /// Whether this node serves the shard.
    pub(crate) fn serves(&self, shard: ShardId) -> bool {
        self.shards().contains_key(&shard)
    }

    /// Number of shards that this node serves.
    pub(crate) fn shards_served(&self) -> usize {
        self.shards().len()
    }

    /// Counters and gauges for metrics.
    pub(crate) fn figures(&self) -> Figures {
        let Counters { given, forwarded, timers_fired, transitions, node_waits, .. } =
            &self.counters;
        let (read_only, set_aside) = self.watch.counts();
        let shards = self.shards_served();
        let state = lock(&self.state);
        let machine = &state.machine;
        let mut faults = self.counters.faults();
        faults.push((StoreFault::Upkeep, self.store.upkeep_failures()));
        Figures {
            shards,
            joined: self.trusted(),
            lease_left: self.cluster.as_ref().map(Cluster::lease_left),
            nodes: machine.nodes().len(),
            links: machine.links(),
            workers: machine.workers(),
            tasks_waiting: machine.waiting(WorkKind::Workflow),
            activities_waiting: machine.waiting(WorkKind::Activity),
            given: given.get(),
            forwarded: forwarded.get(),
            timers_fired: timers_fired.get(),
            node_waits: node_waits.get(),
            transitions: transitions.get(),
            commits: self.counters.commit_times(),
            faults,
            read_only,
            set_aside,
            unreadable: self.counters.unreadable.get(),
            refused_effects: self.counters.refused_effects.get(),
            clock_steps: self.counters.clock_steps.get(),
        }
    }

    /// Current problems of the node.
    pub(crate) fn health(&self) -> Health {
        Health { failed: self.failed.borrow().clone(), ..self.watch.health() }
    }

    /// A read from the store failed.
    pub(crate) fn read_failed(&self, error: &ReadError) {
        self.counters.fault(StoreFault::of_read(error));
        self.watch.read_failed(error);
    }

    /// A shard reports a condition that operators should see.
    pub(crate) fn notice(&self, shard: ShardId, notice: &Notice) {
        match notice {
            Notice::Unreadable(..) | Notice::UnreadableAttributes(_) => {
                self.counters.unreadable.add(1)
            }
            Notice::Unstarted(..) | Notice::Senseless(_) => self.counters.refused_effects.add(1),
            Notice::ReadOnly(_) | Notice::SetAside(..) | Notice::Repaired(_) => {}
        }
        self.watch.notice(shard, notice);
    }

    /// The time, and whether the clock was set since the last call. A clock that a test moves never
    /// counts as set.
    pub(crate) fn look_at_clock(&self, steps: &mut Steps) -> (Timestamp, bool) {
        if self.clock.moved_by_hand() {
            return (self.clock.now(), false);
        }
        let before = since_boot();
        let now = self.clock.now();
        let after = since_boot();
        // A thread that was paused between reading two clocks cannot compare them.
        if after.saturating_sub(before) > COMPARABLE {
            return (now, false);
        }
        let step = steps.look(now, after);
        let news = step.is_some_and(|step| self.watch.clock_set(step));
        self.counters.clock_steps.add(u64::from(news));
        (now, step.is_some())
    }

    /// Publishes the state of the lease and the known owners of the shards.
    pub(crate) fn standing(&self, lease: &Lease) {
        if let Some(cluster) = &self.cluster {
            cluster.standing(lease);
            let (owners, nodes) = (lease.addresses().clone(), lease.nodes().clone());
            self.tell(NodeInput::Rows { owners, nodes, read_at: lease.read_at() });
        }
    }

    /// Records that the node has received its whole share, if the lease says so.
    pub(crate) fn arrived(&self, lease: &Lease) {
        if lease.settled() {
            self.arrival.send_if_modified(|arrival| !std::mem::replace(&mut arrival.settled, true));
        }
    }

    /// Whether memory can be trusted: the lease is valid, so no other node can have changed what is
    /// stored.
    pub(crate) fn trusted(&self) -> bool {
        self.cluster.as_ref().is_none_or(Cluster::trusted)
    }

    /// Sends a post to a shard; returns it if the shard has ended.
    pub(crate) fn post(&self, shard: ShardId, post: Post) -> Option<Post> {
        let shards = self.shards();
        match shards.get(&shard) {
            Some(sender) => {
                let sent = sender.send((shard, post, self.gauge.begin()));
                sent.err().map(|SendError((_, post, _))| post)
            }
            None => Some(post),
        }
    }

    pub(crate) fn post_all(&self, message: &Message) {
        let shards = self.shards();
        for (shard, sender) in &*shards {
            drop(sender.send((*shard, Post::Message(message.clone()), self.gauge.begin())));
        }
    }

    /// Opens a stream for the session. It replaces an earlier stream, here or elsewhere.
    pub(crate) fn connect(&self, session: SessionId, account: Option<Account>) -> (u64, Inbox) {
        let stream = self.streams_opened.fetch_add(1, Ordering::Relaxed);
        let (handle, inbox) = outbox::stream(session.clone(), stream, account);
        self.tell(NodeInput::StreamOpened { session, stream, handle });
        (stream, inbox)
    }

    /// Whether workers of this node get no more work.
    pub(crate) fn withdrawn(&self) -> bool {
        lock(&self.state).machine.withdrawn()
    }

    /// A shard is in memory. It does not know which worker has which attempt, nor what was sent to
    /// it before.
    pub(crate) fn opened(&self, shard: ShardId) {
        self.watch.opened(shard);
        self.settled_in(shard);
        self.tell(NodeInput::Opened(shard));
    }

    /// A shard is in memory for the first time, or never will be.
    pub(crate) fn settled_in(&self, shard: ShardId) {
        self.arrival.send_if_modified(|arrival| arrival.unopened.remove(&shard));
    }

    /// Records that the engine can no longer serve all of its shards. The first reason is kept.
    pub(crate) fn fail(&self, reason: String) {
        self.failed.send_if_modified(|failed| {
            let first = failed.is_none();
            failed.get_or_insert(reason);
            first
        });
    }

    /// A shard was lost. If another node has taken it, it may come back; for a node that is alone,
    /// the loss is a failure.
    pub(crate) fn halted(&self, shard: ShardId, why: &Halt) {
        let taken_by_another = matches!(why, Halt::Taken(_)) && self.cluster.is_some();
        self.watch.halted(shard, why, taken_by_another);
        if !taken_by_another {
            self.fail(why.to_string());
        }
    }

    /// Waits until the engine has failed; returns the reason.
    pub(crate) async fn failed(&self) -> String {
        let mut failed = self.failed.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let reason = failed.wait_for(Option::is_some).await.ok().and_then(|failed| failed.clone());
        reason.unwrap_or_default()
    }

    pub(crate) async fn all_opened(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let mut arrival = self.arrival.subscribe();
        let arrived = |arrival: &ShardsOpened| arrival.settled && arrival.unopened.is_empty();
        drop(arrival.wait_for(arrived).await);
    }
}

/// Progress of a new node towards having its share in memory.
#[derive(Default)]
struct ShardsOpened {
    /// The node has received its whole share.
    settled: bool,
    /// Shards that have not been in memory yet.
    unopened: BTreeSet<ShardId>,
}

#[cfg(test)]
mod tests {
    use std::sync::{
        OnceLock, Weak,
        atomic::{AtomicUsize, Ordering},
    };

    use abide_core::dispatch::{QueueKey, Worker};
    use abide_shard::lease::LeaseOptions;
    use abide_store::memory::MemoryStore;

    use super::*;
    use crate::{
        clock::SystemClock,
        peers::{PeerAnswer, PeerMessage, Peers},
    };

    /// A transport that checks that the node's lock is held while a message is sent.
    #[derive(Default)]
    struct Witness {
        node: OnceLock<Weak<Node>>,
        sent: AtomicUsize,
    }

    impl Peers for Witness {
        fn keep(&self, nodes: BTreeSet<String>) {
            let node = self.node.get().and_then(Weak::upgrade).unwrap();
            assert!(node.state.try_lock().is_ok(), "the end of a link could not be told");
            assert_eq!(nodes, BTreeSet::from(["far".into()]));
        }

        fn ask(&self, _: &str, _: Box<RunOperation>) -> PeerAnswer<AnyAnswer> {
            Box::pin(async { Err(CallError::NotServed) })
        }

        fn report(&self, _: &str, _: Report) -> PeerAnswer<ReportAnswer> {
            Box::pin(async { Err(CallError::NotServed) })
        }

        fn send(&self, _: &str, message: PeerMessage) {
            if let PeerMessage::Spare { .. } = message {
                let node = self.node.get().and_then(Weak::upgrade).unwrap();
                assert!(node.state.try_lock().is_err(), "something newer could be said first");
                self.sent.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// A node that receives an older message last would assume forever that no credit is left.
    #[test]
    fn other_nodes_hear_last_of_credit_what_was_true_last() {
        let witness = Arc::<Witness>::default();
        let lease = LeaseOptions {
            node: "near".into(),
            incarnation: 1,
            address: "near".into(),
            lease: Duration::from_secs(5),
        };
        let peers = Arc::clone(&witness) as Arc<dyn Peers>;
        let membership = Membership { lease, peers };
        let store = Arc::new(MemoryStore::default());
        let clock = Arc::new(SystemClock) as Arc<dyn Clock>;
        let (sender, _messages) = mpsc::unbounded_channel();
        let times = (clock, Limits::default());
        let node = Node::new(store, times, "near".into(), 1, Some(&membership), sender);
        let node = Arc::new(node);
        witness.node.set(Arc::downgrade(&node)).unwrap();
        let nodes = ["near".to_owned(), "far".into()].into();
        node.tell(NodeInput::Rows { owners: BTreeMap::new(), nodes, read_at: Duration::ZERO });
        node.tell(NodeInput::Linked("far".into()));
        let queue = QueueKey {
            namespace: "default".into(),
            queue: "queue".into(),
            kind: WorkKind::Workflow,
        };
        let (stream, _given) = node.connect("worker".into(), None);
        let worker = Worker { session: "worker".into(), identity: "worker".into(), build: None };
        node.tell(NodeInput::Credit { stream, queue, worker, credits: 1 });
        assert_eq!(witness.sent.load(Ordering::Relaxed), 1);
    }
}
