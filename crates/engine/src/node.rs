//! What all parts of one engine share: the store, the clock, the queues, the way to each shard.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use abide_core::{
    call::{CallError, CallReply, Dispatch, Ticket, WorkKind, Worker},
    ids::{SessionId, ShardId},
    limits::Limits,
    time::Timestamp,
};
use abide_shard::{
    borders::Borders,
    lease::Lease,
    message::{Halt, Message, Notice, Offer},
    queue::{QueueMessage, QueueOutput, Queues},
};
use abide_store::{ReadError, Store};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    clock::{Clock, Steps, since_boot},
    cluster::{Cluster, Membership},
    figures::{Counters, Figures, StoreFault},
    gauge::{Gauge, Work},
    health::{Health, Watch},
    peers::PeerMessage,
    session::Given,
};

/// An answer on its way to its caller. It is under way until the caller has it.
pub(crate) type Answer = oneshot::Sender<(Result<CallReply, CallError>, Work)>;

/// What a driver takes.
#[derive(Debug)]
pub(crate) enum Post {
    /// For the machine.
    Message(Message),
    /// What the store answered the machine.
    Answer(Message),
    /// A call, with the way back.
    Call(Ticket, Box<abide_core::call::Call>, Answer),
    /// Nobody waits for the answer any more.
    Forget(Ticket),
    /// Finish what is in flight, then end.
    Close,
    /// The same, but the lease is over: nobody waits for the answer.
    Lapsed,
}

/// What all parts of one engine share.
pub(crate) struct Node {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) borders: Arc<Borders>,
    /// The node's name, the same after a restart.
    pub(crate) name: String,
    /// Who owns shards in the store: no other process, not even of the same node, has this name.
    pub(crate) owner: String,
    pub(crate) gauge: Gauge,
    /// What is counted for those who watch.
    pub(crate) counters: Counters,
    /// What is wrong.
    pub(crate) watch: Watch,
    /// The others, if there may be any.
    pub(crate) cluster: Option<Cluster>,
    /// The way to each shard that is served here.
    shards: RwLock<BTreeMap<ShardId, mpsc::UnboundedSender<(Post, Work)>>>,
    queues: Mutex<Queues>,
    sessions: Mutex<Streams>,
    /// Shards that are in memory here.
    open: Mutex<BTreeSet<ShardId>>,
    arrival: watch::Sender<Arrival>,
    /// Why the engine cannot serve all of its shards any more.
    failed: watch::Sender<Option<String>>,
}

impl Node {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        limits: Limits,
        name: String,
        incarnation: u64,
        membership: Option<&Membership>,
    ) -> Self {
        let queues = Mutex::new(Queues::new(limits.queued_offers));
        Self {
            store,
            gauge: Gauge::new(clock.moved_by_hand()),
            counters: Counters::default(),
            watch: Watch::default(),
            clock,
            limits: Arc::new(limits),
            borders: Arc::default(),
            owner: format!("{name}#{incarnation:016x}"),
            name,
            cluster: membership.map(Cluster::new),
            shards: RwLock::default(),
            queues,
            sessions: Mutex::default(),
            open: Mutex::default(),
            arrival: watch::Sender::default(),
            failed: watch::Sender::new(None),
        }
    }

    /// Lets commands through between namespaces.
    pub(crate) fn with_borders(mut self, borders: Borders) -> Self {
        self.borders = Arc::new(borders);
        self
    }

    /// A shard is served here from now on; gives what comes for it.
    pub(crate) fn serve(&self, shard: ShardId) -> mpsc::UnboundedReceiver<(Post, Work)> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.arrival.send_modify(|arrival| {
            arrival.unopened.insert(shard);
        });
        self.shards.write().unwrap_or_else(PoisonError::into_inner).insert(shard, sender);
        if let Some(cluster) = &self.cluster {
            cluster.moved(shard);
        }
        receiver
    }

    /// A shard is served here no more.
    pub(crate) fn release(&self, shard: ShardId) {
        self.watch.released(shard);
        self.shards.write().unwrap_or_else(PoisonError::into_inner).remove(&shard);
        self.settled_in(shard);
    }

    /// The shard is served here.
    pub(crate) fn serves(&self, shard: ShardId) -> bool {
        self.shards.read().unwrap_or_else(PoisonError::into_inner).contains_key(&shard)
    }

    /// How many shards are served here.
    pub(crate) fn shards_served(&self) -> usize {
        self.shards.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// How the node stands, and what it has done.
    pub(crate) fn figures(&self) -> Figures {
        let Counters { given, forwarded, timers_fired, transitions, .. } = &self.counters;
        let (read_only, set_aside) = self.watch.counts();
        let waiting = |kind| lock(&self.queues).waiting(kind);
        let (nodes, links) = self.cluster.as_ref().map(Cluster::others).unwrap_or_default();
        Figures {
            shards: self.shards_served(),
            joined: self.trusted(),
            lease_left: self.cluster.as_ref().map(Cluster::lease_left),
            nodes,
            links,
            workers: lock(&self.sessions).open.len(),
            tasks_waiting: waiting(WorkKind::Workflow),
            activities_waiting: waiting(WorkKind::Activity),
            given: given.get(),
            forwarded: forwarded.get(),
            timers_fired: timers_fired.get(),
            transitions: transitions.get(),
            commits: self.counters.commit_times(),
            faults: self.counters.faults(),
            read_only,
            set_aside,
            unreadable: self.counters.unreadable.get(),
            clock_steps: self.counters.clock_steps.get(),
        }
    }

    /// What is wrong with the node.
    pub(crate) fn health(&self) -> Health {
        Health { failed: self.failed.borrow().clone(), ..self.watch.health() }
    }

    /// The store could not be read.
    pub(crate) fn read_failed(&self, error: &ReadError) {
        self.counters.fault(StoreFault::of_read(error));
        self.watch.read_failed(error);
    }

    /// A shard says what an operator should know.
    pub(crate) fn notice(&self, shard: ShardId, notice: &Notice) {
        self.counters.unreadable.add(u64::from(matches!(notice, Notice::Unreadable(..))));
        self.watch.notice(shard, notice);
    }

    /// Whether the clock was set since somebody looked at it last. One that a test moves is not.
    pub(crate) fn clock_set(&self, steps: &mut Steps, now: Timestamp) -> bool {
        if self.clock.moved_by_hand() {
            return false;
        }
        let step = steps.look(now, since_boot());
        let news = step.is_some_and(|step| self.watch.clock_set(step));
        self.counters.clock_steps.add(u64::from(news));
        step.is_some()
    }

    /// How the node's lease stands.
    pub(crate) fn standing(&self, lease: &Lease) {
        if let Some(cluster) = &self.cluster {
            cluster.standing(lease);
        }
        if self.cluster.as_ref().is_some_and(Cluster::lease_lost) {
            // Whatever cut this node off need not cut its workers and callers off from others.
            self.disconnect_all();
            self.lapse_all();
        }
    }

    fn lapse_all(&self) {
        let shards = self.shards.read().unwrap_or_else(PoisonError::into_inner);
        for sender in shards.values() {
            drop(sender.send((Post::Lapsed, self.gauge.begin())));
        }
    }

    /// The node has been given the shards of its share, if the lease says so.
    pub(crate) fn arrived(&self, lease: &Lease) {
        if lease.settled() {
            self.arrival.send_if_modified(|arrival| !std::mem::replace(&mut arrival.settled, true));
        }
    }

    /// What a shard remembers is what is stored: nobody else can have changed it.
    pub(crate) fn trusted(&self) -> bool {
        self.cluster.as_ref().is_none_or(Cluster::trusted)
    }

    /// Sends something to a shard. A shard that has ended takes nothing, and gives it back.
    pub(crate) fn post(&self, shard: ShardId, post: Post) -> Option<Post> {
        let shards = self.shards.read().unwrap_or_else(PoisonError::into_inner);
        match shards.get(&shard) {
            Some(sender) => sender.send((post, self.gauge.begin())).err().map(|failed| failed.0.0),
            None => Some(post),
        }
    }

    pub(crate) fn post_all(&self, message: &Message) {
        let shards = self.shards.read().unwrap_or_else(PoisonError::into_inner);
        for sender in shards.values() {
            drop(sender.send((Post::Message(message.clone()), self.gauge.begin())));
        }
    }

    /// Tells the queues, and tells shards what they answer.
    pub(crate) fn queue(&self, message: QueueMessage) {
        for output in self.ask_queues(message, None) {
            self.pass_on(output);
        }
    }

    /// Tells the queues, perhaps what another node wants to borrow; what they answer must be passed on.
    /// Only what they say of credit is said here, before anybody else speaks to them: other nodes must
    /// hear last what was true last, or they wait for credit of which they were told long ago.
    pub(crate) fn ask_queues(
        &self,
        message: QueueMessage,
        borrower: Option<&str>,
    ) -> Vec<QueueOutput> {
        let mut queues = lock(&self.queues);
        queues.handle(message);
        let outputs = std::iter::from_fn(|| queues.poll());
        outputs.filter_map(|output| self.tell_of_credit(borrower, output)).collect()
    }

    fn tell_of_credit(&self, borrower: Option<&str>, output: QueueOutput) -> Option<QueueOutput> {
        match (output, borrower) {
            (QueueOutput::Spare { queue, build, credits }, _) => {
                self.broadcast(&PeerMessage::Spare { queue, build, credits });
                None
            }
            (QueueOutput::Declined(offer), Some(node)) => {
                // If it cannot be told, it offers the work again by itself.
                self.send(node, PeerMessage::Declined(offer));
                None
            }
            (other, _) => Some(other),
        }
    }

    /// Tells shards what the queues answered.
    pub(crate) fn pass_on(&self, output: QueueOutput) {
        match output {
            QueueOutput::Match(offer, worker) => self.matched(offer, worker),
            QueueOutput::Refill(queue) => self.post_all(&Message::Refill(queue)),
            QueueOutput::NewBuild(queue, build) => {
                self.broadcast(&PeerMessage::NewBuild(queue.clone(), build.clone()));
                self.post_all(&Message::NewBuild(queue, build));
            }
            QueueOutput::Pass(offer, node) => self.pass(&node, offer),
            // Other nodes were told of credit at once.
            QueueOutput::Declined(_) | QueueOutput::Spare { .. } => {}
        }
    }

    /// A shard that is served here may have a worker. Offers of a shard that has moved are void.
    pub(crate) fn matched(&self, offer: Offer, worker: Worker) {
        let shard = offer.shard;
        let post = Post::Message(Message::Matched(offer, worker));
        if let Some(Post::Message(Message::Matched(offer, worker))) = self.post(shard, post) {
            self.unmatched(offer, worker);
        }
    }

    /// A match came to nothing: the worker has its credit back, wherever it is connected.
    pub(crate) fn unmatched(&self, offer: Offer, worker: Worker) {
        match self.home_of(&worker.session) {
            // If it cannot be told, it gives the credit back by itself when the link begins anew.
            Some(node) => {
                self.send(&node, PeerMessage::Unmatched(offer, worker));
            }
            None => self.queue(QueueMessage::Unmatched(offer, worker)),
        }
    }

    /// The other node to which a worker is connected.
    fn home_of(&self, session: &SessionId) -> Option<String> {
        self.cluster.as_ref()?.neighbours().home_of(session).cloned()
    }

    /// Opens a stream for the session. A stream that the session had before, here or elsewhere, has
    /// ended by that, though its end may not have been noticed yet.
    pub(crate) fn connect(&self, session: &SessionId) -> (u64, Stream) {
        let (sender, receiver) = mpsc::unbounded_channel();
        // Held to the end here and wherever a stream ends, so that all hear of streams in the order in
        // which they came and went.
        let mut streams = lock(&self.sessions);
        streams.opened += 1;
        let stream = streams.opened;
        let replaced = streams.open.insert(session.clone(), (stream, sender)).is_some();
        let moved =
            self.cluster.as_ref().is_some_and(|cluster| cluster.neighbours().came_home(session));
        if replaced || moved {
            self.lose(session);
        }
        self.broadcast(&PeerMessage::SessionCame(session.clone()));
        (stream, receiver)
    }

    /// A stream has ended.
    pub(crate) fn disconnect(&self, session: &SessionId, stream: u64) {
        let mut streams = lock(&self.sessions);
        if streams.open.get(session).is_some_and(|(open, _)| *open == stream) {
            streams.open.remove(session);
            self.lose(session);
            self.broadcast(&PeerMessage::SessionLost(session.clone()));
        }
    }

    /// The session is connected to another node: the stream that it had here has ended.
    pub(crate) fn superseded(&self, session: &SessionId) -> bool {
        let mut streams = lock(&self.sessions);
        let ended = streams.open.remove(session).is_some();
        if ended {
            self.lose(session);
        }
        ended
    }

    /// Tells the queues something about a stream's credit, unless the stream has ended or was replaced.
    pub(crate) fn queue_for(&self, session: &SessionId, stream: u64, message: QueueMessage) {
        // Held meanwhile, so that the end of the stream comes after this.
        let streams = lock(&self.sessions);
        let open = streams.open.get(session).is_some_and(|(open, _)| *open == stream);
        if open && !streams.withdrawn {
            self.queue(message);
        }
    }

    /// What the session had here on a stream that has ended is lost.
    fn lose(&self, session: &SessionId) {
        if let Some(cluster) = &self.cluster {
            cluster.neighbours().forget_lent(session);
        }
        self.queue(QueueMessage::Gone(session.clone()));
        self.post_all(&Message::SessionLost(session.clone()));
    }

    /// Workers get nothing more here; what they have they may still answer.
    pub(crate) fn withdraw_all(&self) {
        let sessions: Vec<_> = {
            let mut streams = lock(&self.sessions);
            streams.withdrawn = true;
            streams.open.keys().cloned().collect()
        };
        for session in sessions {
            self.queue(QueueMessage::Gone(session));
        }
    }

    /// Workers get nothing more here.
    pub(crate) fn withdrawn(&self) -> bool {
        lock(&self.sessions).withdrawn
    }

    /// The streams of all workers end.
    pub(crate) fn disconnect_all(&self) {
        let mut streams = lock(&self.sessions);
        for session in std::mem::take(&mut streams.open).into_keys() {
            self.lose(&session);
            self.broadcast(&PeerMessage::SessionLost(session));
        }
    }

    /// The session is connected here.
    pub(crate) fn connected(&self, session: &SessionId) -> bool {
        lock(&self.sessions).open.contains_key(session)
    }

    /// The sessions that are connected here.
    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        lock(&self.sessions).open.keys().cloned().collect()
    }

    /// A shard is in memory anew: it knows neither who has which attempt nor what was sent to it.
    pub(crate) fn shard_opened(&self, shard: ShardId) {
        lock(&self.open).insert(shard);
        self.watch.opened(shard);
        self.settled_in(shard);
        let shards = BTreeSet::from([shard]);
        self.ask_for_attempts(&shards);
        self.broadcast(&PeerMessage::Opened(shards.clone()));
        self.post_all(&Message::SendAgain(shards));
    }

    /// A shard is not in memory any more: its offers are void.
    pub(crate) fn shard_closed(&self, shard: ShardId) {
        lock(&self.open).remove(&shard);
        self.queue(QueueMessage::ShardClosed(shard));
    }

    /// The shards that are in memory here.
    pub(crate) fn open_shards(&self) -> BTreeSet<ShardId> {
        lock(&self.open).clone()
    }

    /// A shard is in memory for the first time, or will never be.
    pub(crate) fn settled_in(&self, shard: ShardId) {
        self.arrival.send_if_modified(|arrival| arrival.unopened.remove(&shard));
    }

    /// A shard cannot be served any more. The first reason counts.
    pub(crate) fn fail(&self, reason: String) {
        self.failed.send_if_modified(|failed| {
            let first = failed.is_none();
            failed.get_or_insert(reason);
            first
        });
    }

    /// A shard was lost. One that another node has taken may come back; a node that is alone has no
    /// business losing one.
    pub(crate) fn halted(&self, shard: ShardId, why: &Halt) {
        let taken_by_another = matches!(why, Halt::Taken(_)) && self.cluster.is_some();
        self.watch.halted(shard, why, taken_by_another);
        if !taken_by_another {
            self.fail(why.to_string());
        }
    }

    /// Waits until a shard cannot be served any more.
    pub(crate) async fn failed(&self) -> String {
        let mut failed = self.failed.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let reason = failed.wait_for(Option::is_some).await.ok().and_then(|failed| failed.clone());
        reason.unwrap_or_default()
    }

    pub(crate) async fn all_opened(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let mut arrival = self.arrival.subscribe();
        let arrived = |arrival: &Arrival| arrival.settled && arrival.unopened.is_empty();
        drop(arrival.wait_for(arrived).await);
    }

    /// Workers that are connected here present their attempts of these shards.
    pub(crate) fn ask_for_attempts(&self, shards: &BTreeSet<ShardId>) {
        for (_, sender) in lock(&self.sessions).open.values() {
            self.ask_for_attempts_of(sender, shards);
        }
    }

    /// The same for one worker.
    pub(crate) fn ask_one_for_attempts(&self, session: &SessionId, shards: &BTreeSet<ShardId>) {
        if let Some((_, sender)) = lock(&self.sessions).open.get(session) {
            self.ask_for_attempts_of(sender, shards);
        }
    }

    fn ask_for_attempts_of(
        &self,
        sender: &mpsc::UnboundedSender<(Given, Work)>,
        shards: &BTreeSet<ShardId>,
    ) {
        for shard in shards {
            // A worker that has gone has nothing to present.
            drop(sender.send((Given::PresentAttempts(*shard), self.gauge.begin())));
        }
    }

    /// Gives work to a worker; one that is gone or cannot be reached loses it as if its stream had
    /// ended.
    pub(crate) fn dispatch(&self, worker: &Worker, dispatch: Dispatch) {
        let session = &worker.session;
        let given = match self.home_of(session) {
            Some(node) => {
                let message = PeerMessage::Dispatch(worker.clone(), Box::new(dispatch));
                self.send(&node, message)
            }
            None => self.give(session, dispatch),
        };
        if !given {
            self.post_all(&Message::SessionLost(session.clone()));
        }
    }

    /// Gives work to a worker that is connected here; `false` if it is not.
    pub(crate) fn give(&self, session: &SessionId, dispatch: Dispatch) -> bool {
        let given = lock(&self.sessions).open.get(session).is_some_and(|(_, sender)| {
            sender.send((Given::Work(dispatch), self.gauge.begin())).is_ok()
        });
        self.counters.given.add(u64::from(given));
        given
    }
}

/// How far a node is from having its share in memory.
#[derive(Default)]
struct Arrival {
    /// It was given its whole share.
    settled: bool,
    /// Shards that it was given and that have not been in memory yet.
    unopened: BTreeSet<ShardId>,
}

/// What comes on the stream of a session.
pub(crate) type Stream = mpsc::UnboundedReceiver<(Given, Work)>;

/// The open streams of sessions. A session has one; streams are numbered, because the end of an old
/// one may be noticed after a new one was opened.
#[derive(Default)]
struct Streams {
    open: BTreeMap<SessionId, (u64, mpsc::UnboundedSender<(Given, Work)>)>,
    opened: u64,
    /// Nobody gets credit any more.
    withdrawn: bool,
}

/// The data behind these locks is whole whenever they are released, also by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            OnceLock, Weak,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use abide_core::call::{Call, QueueKey, RunTarget};
    use abide_core::run::Description;
    use abide_shard::lease::LeaseOptions;
    use abide_store::memory::MemoryStore;

    use super::*;
    use crate::{
        clock::SystemClock,
        peers::{PeerAnswer, Peers},
    };

    /// Links that see whether anybody else could speak to the queues while something is said of credit.
    #[derive(Default)]
    struct Witness {
        node: OnceLock<Weak<Node>>,
        said: AtomicUsize,
    }

    impl Peers for Witness {
        fn keep(&self, _: BTreeSet<String>) {}

        fn call(&self, _: &str, _: Call) -> PeerAnswer<CallReply> {
            Box::pin(async { Err(CallError::NotServed) })
        }

        fn describe(&self, _: &str, _: RunTarget) -> PeerAnswer<Description> {
            Box::pin(async { Err(CallError::NotServed) })
        }

        fn send(&self, _: &str, message: PeerMessage) -> bool {
            if let PeerMessage::Spare { .. } | PeerMessage::Declined(_) = message {
                let node = self.node.get().and_then(Weak::upgrade).unwrap();
                assert!(node.queues.try_lock().is_err(), "something newer could be said first");
                self.said.fetch_add(1, Ordering::Relaxed);
            }
            true
        }
    }

    /// A node that hears an older word last thinks for ever that nothing is left.
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
        let (clock, limits) = (Arc::new(SystemClock), Limits::default());
        let node = Arc::new(Node::new(store, clock, limits, "near".into(), 1, Some(&membership)));
        witness.node.set(Arc::downgrade(&node)).unwrap();
        let nodes = ["near".to_owned(), "far".into()].into();
        let cluster = node.cluster.as_ref().unwrap();
        cluster.neighbours().read(&BTreeMap::new(), &nodes, Duration::ZERO);
        node.reached_node("far");
        let queue = QueueKey {
            namespace: "default".into(),
            queue: "queue".into(),
            kind: WorkKind::Workflow,
        };
        let offer = Offer {
            queue: queue.clone(),
            shard: ShardId::new(1).unwrap(),
            workflow: abide_core::ids::WorkflowKey {
                namespace: "default".into(),
                workflow: "workflow".into(),
            },
            run: abide_core::ids::RunId::MIN,
            work: abide_shard::message::Work::Workflow,
            prefer: None,
            except: BTreeSet::new(),
        };
        node.hear("far", PeerMessage::Offer(offer));
        let worker = Worker { session: "worker".into(), identity: "worker".into(), build: None };
        node.queue(QueueMessage::Credit { queue, worker, credits: 1 });
        assert_eq!(witness.said.load(Ordering::Relaxed), 2, "declined, then lent");
    }
}
