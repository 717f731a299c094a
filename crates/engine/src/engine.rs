//! The handle of an engine, for clients, operators, workers and other nodes.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use abide_core::{
    dispatch::Worker,
    ids::{NamespaceId, ShardId},
    limits::{InvalidField, Limits},
    operation::{AnswerSize, AnyAnswer, AnyOperation, CallError, Caller, RunOperation, Ticket},
    report::{Report, ReportAnswer},
    time::Timestamp,
};
use abide_shard::{
    borders::Borders,
    lease::{Lease, LeaseMessage, LeaseOptions},
    node::NodeInput,
};
use abide_store::Store;
use futures_util::future::BoxFuture;
use tokio::{
    sync::{Mutex, mpsc, oneshot, watch},
    task::JoinSet,
};
use uuid::Uuid;

use crate::{
    access, batch,
    clock::{Clock, SystemClock},
    cluster::Membership,
    figures::Figures,
    gauge::{Gauge, InFlight},
    health::Health,
    members::Members,
    node::{Node, Post, ReplySender},
    outbox::Account,
    peers::{PeerAnswer, PeerMessage},
    route::{CallRoute, Destination},
    session::Session,
    turns::{self, Turn, Turns},
};

/// Configuration of an engine.
#[derive(Clone)]
pub struct Options {
    /// The node's name in the store; stays the same after a restart.
    pub name: String,
    /// Bounds on sizes, counts and times.
    pub limits: Limits,
    /// The source of wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// The namespaces that exist; calls to others are refused.
    pub namespaces: BTreeSet<NamespaceId>,
    /// Which namespaces accept commands from which others; none by default.
    pub borders: Borders,
    /// Membership in a cluster; none if no other process can reach the store.
    pub membership: Option<Membership>,
}

/// The namespace of callers that do not choose one.
pub const DEFAULT_NAMESPACE: &str = "default";

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "local".into(),
            limits: Limits::default(),
            clock: Arc::new(SystemClock),
            namespaces: BTreeSet::from([DEFAULT_NAMESPACE.into()]),
            borders: Borders::default(),
            membership: None,
        }
    }
}

/// A running engine on one store. [`Self::shutdown`] stops it in an orderly way.
pub struct Engine {
    pub(crate) node: Arc<Node>,
    pub(crate) namespaces: BTreeSet<NamespaceId>,
    /// The task of `Members`; it ends when all shards are released.
    members: Mutex<JoinSet<()>>,
    lease: mpsc::UnboundedSender<LeaseMessage>,
    stopping: watch::Sender<bool>,
    /// What the engine does without being asked.
    pub(crate) background: Mutex<JoinSet<()>>,
    /// The next call number. It begins at a random number: workers answer queries by these numbers,
    /// and may still answer queries of a previous process.
    tickets: AtomicU64,
}

impl Engine {
    /// Starts an engine on a store. It serves all shards or, in a cluster, its share of them. Needs
    /// a tokio runtime.
    pub fn start(store: Arc<dyn Store>, options: Options) -> Self {
        let Options { name, limits, clock, namespaces, borders, membership } = options;
        let alone = || LeaseOptions {
            node: name.clone(),
            incarnation: Uuid::new_v4().as_u64_pair().0,
            address: String::new(),
            lease: LeaseOptions::LEASE,
        };
        let lease = membership.as_ref().map_or_else(alone, |membership| membership.lease.clone());
        let (incarnation, others) = (lease.incarnation, membership.as_ref());
        let (sender, lease_messages) = mpsc::unbounded_channel();
        let times = (clock, limits);
        let node = Node::new(store, times, name, incarnation, others, sender.clone());
        let node = Arc::new(node.with_borders(borders));
        let lease = match membership {
            Some(_) => Lease::new(lease),
            None => Lease::alone(lease),
        };
        let mut members = JoinSet::new();
        members.spawn(Members::new(Arc::clone(&node), lease, lease_messages).run());
        let stopping = watch::Sender::new(false);
        let mut engine = Self::of(node, namespaces, sender, stopping);
        engine.members = Mutex::new(members);
        let handle = engine.handle();
        engine.background.get_mut().spawn(batch::adopt(handle));
        engine
    }

    fn of(
        node: Arc<Node>,
        namespaces: BTreeSet<NamespaceId>,
        lease: mpsc::UnboundedSender<LeaseMessage>,
        stopping: watch::Sender<bool>,
    ) -> Self {
        let (members, background) = (Mutex::default(), Mutex::default());
        let tickets = AtomicU64::new(Uuid::new_v4().as_u64_pair().0);
        Self { node, namespaces, members, lease, stopping, background, tickets }
    }

    /// Another handle of this engine, for its own tasks.
    pub(crate) fn handle(&self) -> Self {
        let (node, namespaces) = (Arc::clone(&self.node), self.namespaces.clone());
        Self::of(node, namespaces, self.lease.clone(), self.stopping.clone())
    }

    /// Whether no process with this owner name is alive, as far as this one can know at once: it is
    /// alone, or it has the name of the node.
    pub(crate) fn is_gone(&self, owner: &str) -> bool {
        let node = owner.rsplit_once('#').map_or(owner, |(node, _)| node);
        *owner != self.node.owner && (self.node.cluster.is_none() || node == self.node.name)
    }

    /// Waits until every shard that this node serves is in memory or has ended. In a cluster this
    /// includes joining and receiving the first share.
    pub async fn ready(&self) {
        self.node.all_opened().await;
    }

    /// Waits until the engine may not answer for any run, because its lease is lost. Never ends for
    /// an engine that is alone.
    pub async fn lease_lost(&self) {
        match &self.node.cluster {
            Some(cluster) => cluster.until_lease(false).await,
            None => std::future::pending().await,
        }
    }

    /// Waits until the lease is valid; a lost lease may become valid again.
    pub async fn lease_good(&self) {
        if let Some(cluster) = &self.node.cluster {
            cluster.until_lease(true).await;
        }
    }

    /// Finishes what is in flight and stops: everything acknowledged is durable, waiting calls fail
    /// as unavailable, and the streams of workers end. A node of a cluster [leaves](Self::leave)
    /// first.
    pub async fn shutdown(&self) {
        if self.node.cluster.is_some() {
            self.leave().await;
        }
        self.stopping.send_replace(true);
        self.node.tell(NodeInput::EndStreams);
        self.release().await;
    }

    /// Hands the shards of this node over to other nodes. Meanwhile it forwards calls; its workers
    /// get no more work, but may still report on what they have. Does nothing on a node that is
    /// alone.
    pub async fn leave(&self) {
        if self.node.cluster.is_some() {
            self.node.tell(NodeInput::WithdrawAll);
            self.release().await;
        }
    }

    async fn release(&self) {
        // The tasks of the engine hold its store, which may be opened again after this.
        self.background.lock().await.shutdown().await;
        // Sending fails only if the lease has already left.
        drop(self.lease.send(LeaseMessage::Leave));
        let mut members = self.members.lock().await;
        while members.join_next().await.is_some() {}
    }

    /// Whether the engine stops or has stopped. A stream opened after this would never end.
    pub fn stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Performs an operation: the single entry point for clients and operators of every transport.
    /// An operation on a run is served by this node or forwarded to the owner of the run's shard;
    /// while the shard moves between nodes, the call waits a little.
    pub async fn ask(
        &self,
        caller: &Caller,
        operation: AnyOperation,
    ) -> Result<AnyAnswer, CallError> {
        access::admit(caller, &operation)?;
        match operation {
            AnyOperation::Run(operation) => self.operate(operation).await,
            // Boxed to keep this future small, because very many operations may wait for a run.
            AnyOperation::Read(operation) => {
                let read = Box::pin(self.read(*operation, &turns::at_once)).await;
                read.map(|(answer, _)| answer)
            }
        }
    }

    /// Performs an operation like [`ask`](Self::ask). If building the answer takes much memory and time,
    /// it waits for its turn, but not before other nodes have said what is needed from them. The turn
    /// comes with the answer.
    pub async fn ask_in_turn(
        &self,
        caller: &Caller,
        operation: AnyOperation,
        turns: Turns<'_>,
    ) -> Result<(AnyAnswer, Option<Turn>), CallError> {
        access::admit(caller, &operation)?;
        let built = operation.name().answer_size() == AnswerSize::Built;
        match operation {
            AnyOperation::Run(operation) if built => self.operate_in_turn(operation, turns).await,
            AnyOperation::Run(operation) => Ok((self.operate(operation).await?, None)),
            AnyOperation::Read(operation) => self.read(*operation, turns).await,
        }
    }

    async fn operate_in_turn(
        &self,
        operation: Box<RunOperation>,
        turns: Turns<'_>,
    ) -> Result<(AnyAnswer, Option<Turn>), CallError> {
        self.check_namespace(operation.namespace())?;
        let shard = operation.workflow().slot().shard();
        let repeatable = operation.name().repeatable();
        let here = async |operation| {
            let turn = turns().await;
            Ok((self.ask_here(operation).await?, Some(turn)))
        };
        let Some(cluster) = &self.node.cluster else { return here(operation).await };
        let asked = self.at_owner(shard, repeatable, move |place| match place {
            Destination::Here => Box::pin(here(operation.clone())),
            Destination::At(node) => {
                let answer = cluster.peers.ask(&node, operation.clone());
                Box::pin(async move {
                    let answer = self.unless_stopped(answer).await?;
                    Ok((answer, Some(turns().await)))
                })
            }
        });
        asked.await
    }

    /// Performs an operation on a run, on this node or the node that serves it.
    pub(crate) async fn operate(
        &self,
        operation: Box<RunOperation>,
    ) -> Result<AnyAnswer, CallError> {
        self.check_namespace(operation.namespace())?;
        let Some(cluster) = &self.node.cluster else { return self.ask_here(operation).await };
        let shard = operation.workflow().slot().shard();
        let repeatable = operation.name().repeatable();
        let asked = self.at_owner(shard, repeatable, move |place| match place {
            Destination::Here => Box::pin(self.ask_here(operation.clone())),
            Destination::At(node) => {
                let answer = cluster.peers.ask(&node, operation.clone());
                if repeatable { Box::pin(self.unless_stopped(answer)) } else { answer }
            }
        });
        // Boxed to keep this future small, because most engines are alone.
        Box::pin(asked).await
    }

    /// Delivers a worker's report, on this node or to the node that serves the run. It takes no
    /// [`Caller`]: roles decide what clients and operators may ask, and a run accepts a report only
    /// for work that is in flight.
    pub async fn report(&self, report: Report) -> Result<ReportAnswer, CallError> {
        let (workflow, _) = report.place();
        self.check_namespace(&workflow.namespace)?;
        let Some(cluster) = &self.node.cluster else { return self.report_here(report).await };
        let shard = workflow.slot().shard();
        let answer = self.at_owner(shard, false, move |place| match place {
            Destination::Here => Box::pin(self.report_here(report.clone())),
            Destination::At(node) => cluster.peers.report(&node, report.clone()),
        });
        Box::pin(answer).await
    }

    /// Performs a call on the node that serves the shard. A shard of this node needs no routing.
    async fn at_owner<'a, T>(
        &'a self,
        shard: ShardId,
        repeatable: bool,
        ask: impl Fn(Destination) -> BoxFuture<'a, Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let mut asked = match self.node.serves(shard) {
            true => ask(Destination::Here).await,
            false => Err(CallError::NotServed),
        };
        let mut way = CallRoute::new(&self.node, self.ticket(), shard, repeatable);
        loop {
            match asked {
                Err(failed) if !self.stopping() => {
                    let place = way.after(failed).await?;
                    let elsewhere = matches!(place, Destination::At(_));
                    self.node.counters.forwarded.add(u64::from(elsewhere));
                    asked = ask(place).await;
                }
                answer => return answer,
            }
        }
    }

    fn ticket(&self) -> Ticket {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits for another node's answer, but not after this engine has stopped: the wait may be
    /// long, and the caller can repeat it at another node.
    async fn unless_stopped<T>(&self, answer: PeerAnswer<T>) -> Result<T, CallError> {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            answer = answer => answer,
            _ = stopping.wait_for(|stopping| *stopping) => Err(stopped()),
        }
    }

    /// Performs an operation on a run, if this node serves it. Other nodes forward operations to
    /// this method after they have authorized the caller.
    pub async fn ask_here(&self, operation: Box<RunOperation>) -> Result<AnyAnswer, CallError> {
        let workflow = operation.workflow();
        self.check_namespace(&workflow.namespace)?;
        let shard = workflow.slot().shard();
        let post = |ticket, answer| Post::Ask(ticket, operation, answer);
        let mut waiting = self.post(shard, post)?;
        let answered = (&mut waiting.answered).await;
        waiting.end(answered)
    }

    /// Delivers a worker's report, if this node serves the run.
    pub async fn report_here(&self, report: Report) -> Result<ReportAnswer, CallError> {
        let (workflow, _) = report.place();
        self.check_namespace(&workflow.namespace)?;
        let shard = workflow.slot().shard();
        let post = |ticket, answer| Post::Report(ticket, Box::new(report), answer);
        let mut waiting = self.post(shard, post)?;
        let answered = (&mut waiting.answered).await;
        waiting.end(answered)
    }

    /// Sends a request to its shard. Separate from waiting for the answer, so that the waiting
    /// future is small.
    fn post<T>(
        &self,
        shard: ShardId,
        post: impl FnOnce(Ticket, ReplySender<T>) -> Post,
    ) -> Result<PendingCall<'_, T>, CallError> {
        let ticket = self.ticket();
        let (answer, answered) = oneshot::channel();
        if self.node.post(shard, post(ticket, answer)).is_some() {
            return Err(not_served(&self.node));
        }
        Ok(PendingCall { node: &self.node, shard, ticket, answered, waits: true })
    }

    /// Waits until the engine can no longer serve all of its shards, and returns the reason, for
    /// example that its store has stopped or another process has taken a shard. Everything
    /// acknowledged is durable; a new engine on the same store continues.
    pub async fn failed(&self) -> String {
        self.node.failed().await
    }

    /// Handles a message from another node.
    pub fn receive(&self, node: &str, message: PeerMessage) {
        self.node.tell(NodeInput::Received(node.to_owned(), message));
    }

    /// A link to another node was opened or replaced.
    pub fn linked(&self, node: &str) {
        tracing::info!(node, "linked to another node");
        self.node.tell(NodeInput::Linked(node.to_owned()));
    }

    /// A link from another node was opened or replaced: its earlier messages may be lost.
    pub fn called(&self, node: &str) {
        self.node.tell(NodeInput::Called(node.to_owned()));
    }

    /// The link from another node is closed.
    pub fn link_closed(&self, node: &str) {
        self.node.tell(NodeInput::LinkClosed(node.to_owned()));
    }

    /// The link to another node is closed.
    pub fn unlinked(&self, node: &str) {
        tracing::info!(node, "the link to another node is closed");
        self.node.tell(NodeInput::Unlinked(node.to_owned()));
    }

    /// Whether the engine may answer for its runs and will go on doing so: it is alone, or its
    /// lease is valid and it is not leaving. If not, workers and clients should use another node.
    pub fn joined(&self) -> bool {
        self.node.trusted() && !self.node.withdrawn()
    }

    /// Connects a worker. Its work arrives on the session, and what is unread is accounted for, if its
    /// bytes matter. It takes no [`Caller`]: roles decide what clients and operators may ask, and who may
    /// be a worker is up to the transport.
    pub fn connect(&self, worker: Worker, account: Option<Account>) -> Session {
        let stream = self.node.connect(worker.session.clone(), account);
        Session::new(Arc::clone(&self.node), worker, stream)
    }

    /// Refuses a namespace that does not exist.
    pub fn check_namespace(&self, namespace: &NamespaceId) -> Result<(), CallError> {
        if self.namespaces.contains(namespace) {
            return Ok(());
        }
        self.node.limits.check_length("namespace", namespace.as_str())?;
        let known: Vec<_> = self.namespaces.iter().map(NamespaceId::as_str).collect();
        let problem =
            format!("{namespace:?} does not exist; known namespaces: {}", known.join(", "));
        Err(InvalidField::new("namespace", problem).into())
    }

    /// Counters and gauges for metrics.
    pub fn figures(&self) -> Figures {
        self.node.figures()
    }

    /// Current problems of the engine, for operators.
    pub fn health(&self) -> Health {
        self.node.health()
    }

    /// The gauge of work in flight.
    pub fn gauge(&self) -> &Gauge {
        &self.node.gauge
    }

    /// The current time of the engine's clock.
    pub fn now(&self) -> Timestamp {
        self.node.clock.now()
    }

    /// Bounds on sizes, counts and times.
    pub fn limits(&self) -> &Limits {
        &self.node.limits
    }
}

/// An answer, and the work in flight until the caller has it.
type Answered<T> = (Result<T, CallError>, InFlight);

/// A caller that waits for an answer, and may disconnect before it arrives.
struct PendingCall<'a, T> {
    node: &'a Node,
    shard: ShardId,
    ticket: Ticket,
    answered: oneshot::Receiver<Answered<T>>,
    waits: bool,
}

impl<T> PendingCall<'_, T> {
    /// Takes the answer, or fails because the shard has ended.
    fn end(
        mut self,
        answered: Result<Answered<T>, oneshot::error::RecvError>,
    ) -> Result<T, CallError> {
        self.waits = false;
        let (answer, _work) = answered.map_err(|_| stopped())?;
        answer.map_err(|error| match error {
            CallError::NotServed => not_served(self.node),
            error => error,
        })
    }
}

impl<T> Drop for PendingCall<'_, T> {
    fn drop(&mut self) {
        if self.waits {
            // A shard that has ended has already dropped the call.
            drop(self.node.post(self.shard, Post::Forget(self.ticket)));
        }
    }
}

pub(crate) fn stopped() -> CallError {
    CallError::Unavailable("the engine has stopped".into())
}

/// This node does not serve the shard. An engine that is alone has no other node to ask, so it has
/// stopped.
fn not_served(node: &Node) -> CallError {
    if node.cluster.is_some() { CallError::NotServed } else { stopped() }
}
