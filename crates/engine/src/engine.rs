//! The handle of an engine: calls go in, answers come out, workers connect.

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
    operation::{AnyAnswer, AnyOperation, CallError, Caller, RunOperation, Ticket},
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
    access,
    clock::{Clock, SystemClock},
    cluster::Membership,
    figures::Figures,
    gauge::{Gauge, Work},
    health::Health,
    members::Members,
    node::{Answer, Node, Post},
    peers::{PeerAnswer, PeerMessage},
    session::Session,
    way::{Place, Way},
};

/// How an engine runs.
#[derive(Clone)]
pub struct Options {
    /// The node's name in the store.
    pub name: String,
    /// All bounds.
    pub limits: Limits,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// The namespaces that exist; calls to others are refused.
    pub namespaces: BTreeSet<NamespaceId>,
    /// Which of them accept commands from which others; by default none does.
    pub borders: Borders,
    /// How the engine takes part in a cluster; none if no other process can reach its store.
    pub membership: Option<Membership>,
}

/// The namespace of those who do not choose one.
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

/// A running engine.
pub struct Engine {
    pub(crate) node: Arc<Node>,
    pub(crate) namespaces: BTreeSet<NamespaceId>,
    /// Ends when all shards have been released.
    members: Mutex<JoinSet<()>>,
    lease: mpsc::UnboundedSender<LeaseMessage>,
    stopping: watch::Sender<bool>,
    /// Numbers calls. It begins anywhere: workers answer queries by these numbers, and may still do so
    /// for a process that has ended.
    tickets: AtomicU64,
}

impl Engine {
    /// Starts an engine on a store. All shards are its own, or, in a cluster, its share of them. Needs
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
        let (say, said) = mpsc::unbounded_channel();
        let times = (clock, limits);
        let node = Node::new(store, times, name, incarnation, others, say.clone());
        let node = Arc::new(node.with_borders(borders));
        let lease = match membership {
            Some(_) => Lease::new(lease),
            None => Lease::alone(lease),
        };
        let mut members = JoinSet::new();
        members.spawn(Members::new(Arc::clone(&node), lease, said).run());
        let (members, stopping) = (Mutex::new(members), watch::Sender::new(false));
        let tickets = AtomicU64::new(Uuid::new_v4().as_u64_pair().0);
        Self { node, namespaces, members, lease: say, stopping, tickets }
    }

    /// Waits until every shard that is served here is in memory, or has ended. In a cluster, that is
    /// when the node has joined and has its first share.
    pub async fn ready(&self) {
        self.node.all_opened().await;
    }

    /// Waits until the engine cannot speak for any run, because its lease was lost. One that is alone
    /// always can.
    pub async fn lease_lost(&self) {
        match &self.node.cluster {
            Some(cluster) => cluster.until_lease(false).await,
            None => std::future::pending().await,
        }
    }

    /// Waits until the lease is good, as it may be again after it was lost.
    pub async fn lease_good(&self) {
        if let Some(cluster) = &self.node.cluster {
            cluster.until_lease(true).await;
        }
    }

    /// Finishes what is in flight and stops: what was acknowledged is durable, waiting callers are
    /// told that the engine cannot be reached, and the streams of workers end. A node of a cluster
    /// [leaves](Self::leave) first.
    pub async fn shutdown(&self) {
        if self.node.cluster.is_some() {
            self.leave().await;
        }
        self.stopping.send_replace(true);
        self.node.tell(NodeInput::EndStreams);
        self.release().await;
    }

    /// Hands the shards of a node over to others. Until they have them it passes calls on; its workers
    /// get no more work, but may answer for what they have. A node that is alone has nobody to hand
    /// anything to.
    pub async fn leave(&self) {
        if self.node.cluster.is_some() {
            self.node.tell(NodeInput::WithdrawAll);
            self.release().await;
        }
    }

    async fn release(&self) {
        // An engine that has ended needs no telling.
        drop(self.lease.send(LeaseMessage::Leave));
        let mut members = self.members.lock().await;
        while members.join_next().await.is_some() {}
    }

    /// It stops, or has stopped. A stream that is opened after this would never end.
    pub fn stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Performs an operation: the one door for clients and operators, whichever way they come. What is
    /// about a run is served here or at the node that serves the run; while its shard is on its way from
    /// one node to another, it waits a little.
    pub async fn ask(
        &self,
        caller: &Caller,
        operation: AnyOperation,
    ) -> Result<AnyAnswer, CallError> {
        access::admit(caller, &operation)?;
        match operation {
            AnyOperation::Run(operation) => self.operate(operation).await,
            // On the heap, because there may be very many operations that wait for a run.
            AnyOperation::Read(operation) => Box::pin(self.read(*operation)).await,
        }
    }

    /// Performs an operation on a run, here or at the node that serves it.
    pub(crate) async fn operate(
        &self,
        operation: Box<RunOperation>,
    ) -> Result<AnyAnswer, CallError> {
        self.check_namespace(operation.namespace())?;
        let Some(cluster) = &self.node.cluster else { return self.ask_here(operation).await };
        let shard = operation.workflow().slot().shard();
        let repeatable = operation.name().repeatable();
        let asked = self.at_owner(shard, repeatable, move |place| match place {
            Place::Here => Box::pin(self.ask_here(operation.clone())),
            Place::At(node) => {
                let answer = cluster.peers.ask(&node, operation.clone());
                if repeatable { Box::pin(self.unless_stopped(answer)) } else { answer }
            }
        });
        // On the heap, because most engines are alone.
        Box::pin(asked).await
    }

    /// Takes what a worker says of its work, here or at the node that serves the run.
    pub async fn report(&self, report: Report) -> Result<ReportAnswer, CallError> {
        let (workflow, _) = report.place();
        self.check_namespace(&workflow.namespace)?;
        let Some(cluster) = &self.node.cluster else { return self.report_here(report).await };
        let shard = workflow.slot().shard();
        let told = self.at_owner(shard, false, move |place| match place {
            Place::Here => Box::pin(self.report_here(report.clone())),
            Place::At(node) => cluster.peers.report(&node, report.clone()),
        });
        Box::pin(told).await
    }

    /// Asks the node that serves the shard. What is served here needs nobody to tell the way.
    async fn at_owner<'a, T>(
        &'a self,
        shard: ShardId,
        repeatable: bool,
        ask: impl Fn(Place) -> BoxFuture<'a, Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let mut asked = match self.node.serves(shard) {
            true => ask(Place::Here).await,
            false => Err(CallError::NotServed),
        };
        let mut way = Way::new(&self.node, self.ticket(), shard, repeatable);
        loop {
            match asked {
                Err(failed) if !self.stopping() => {
                    let place = way.after(failed).await?;
                    let elsewhere = matches!(place, Place::At(_));
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

    /// What a run elsewhere is waited for may be long in coming, and whoever waits can do so at another
    /// node.
    async fn unless_stopped<T>(&self, answer: PeerAnswer<T>) -> Result<T, CallError> {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            answer = answer => answer,
            _ = stopping.wait_for(|stopping| *stopping) => Err(stopped()),
        }
    }

    /// Performs an operation on a run, if this node serves it. Other nodes come in here, with what their
    /// own door has admitted.
    pub async fn ask_here(&self, operation: Box<RunOperation>) -> Result<AnyAnswer, CallError> {
        let workflow = operation.workflow();
        self.check_namespace(&workflow.namespace)?;
        let shard = workflow.slot().shard();
        let post = |ticket, answer| Post::Ask(ticket, operation, answer);
        let mut waiting = self.post(shard, post)?;
        let answered = (&mut waiting.answered).await;
        waiting.end(answered)
    }

    /// Takes what a worker says of its work, if this node serves the run.
    pub async fn report_here(&self, report: Report) -> Result<ReportAnswer, CallError> {
        let (workflow, _) = report.place();
        self.check_namespace(&workflow.namespace)?;
        let shard = workflow.slot().shard();
        let post = |ticket, answer| Post::Report(ticket, Box::new(report), answer);
        let mut waiting = self.post(shard, post)?;
        let answered = (&mut waiting.answered).await;
        waiting.end(answered)
    }

    /// Gives a request to its shard. Apart from the wait for its answer, so that what waits is small.
    fn post<T>(
        &self,
        shard: ShardId,
        post: impl FnOnce(Ticket, Answer<T>) -> Post,
    ) -> Result<Waiting<'_, T>, CallError> {
        let ticket = self.ticket();
        let (answer, answered) = oneshot::channel();
        if self.node.post(shard, post(ticket, answer)).is_some() {
            return Err(not_served(&self.node));
        }
        Ok(Waiting { node: &self.node, shard, ticket, answered, waits: true })
    }

    /// Waits until the engine cannot serve all of its shards any more, and says why: its store has
    /// stopped, or another node has taken them. What was acknowledged is safe; a new engine on the
    /// same store goes on.
    pub async fn failed(&self) -> String {
        self.node.failed().await
    }

    /// Another node says something.
    pub fn hear(&self, node: &str, message: PeerMessage) {
        self.node.tell(NodeInput::Heard(node.to_owned(), message));
    }

    /// There is a link to another node, new or anew.
    pub fn linked(&self, node: &str) {
        tracing::info!(node, "another node is there");
        self.node.tell(NodeInput::Linked(node.to_owned()));
    }

    /// There is a link from another node, new or anew: what it said before may have been lost.
    pub fn called(&self, node: &str) {
        self.node.tell(NodeInput::Called(node.to_owned()));
    }

    /// The link from another node is gone.
    pub fn hung_up(&self, node: &str) {
        self.node.tell(NodeInput::HungUp(node.to_owned()));
    }

    /// The link to another node is gone.
    pub fn unlinked(&self, node: &str) {
        tracing::info!(node, "another node cannot be reached");
        self.node.tell(NodeInput::Unlinked(node.to_owned()));
    }

    /// The engine may speak for its runs, and goes on doing so: it is alone, or its lease is good and it
    /// does not leave. If not, workers and clients are better off at another node.
    pub fn joined(&self) -> bool {
        self.node.trusted() && !self.node.withdrawn()
    }

    /// Connects a worker. What it is given arrives on the session.
    pub fn connect(&self, worker: Worker) -> Session {
        let stream = self.node.connect(worker.session.clone());
        Session::new(Arc::clone(&self.node), worker, stream)
    }

    /// The namespace exists.
    pub fn check_namespace(&self, namespace: &NamespaceId) -> Result<(), CallError> {
        if self.namespaces.contains(namespace) {
            return Ok(());
        }
        self.node.limits.check_length("namespace", namespace.as_str())?;
        let known: Vec<_> = self.namespaces.iter().map(NamespaceId::as_str).collect();
        let problem = format!("{namespace:?} does not exist; there is: {}", known.join(", "));
        Err(InvalidField::new("namespace", problem).into())
    }

    /// How the engine stands and what it has done, for those who watch it.
    pub fn figures(&self) -> Figures {
        self.node.figures()
    }

    /// What is wrong with the engine, for those who run it.
    pub fn health(&self) -> Health {
        self.node.health()
    }

    /// What is under way.
    pub fn gauge(&self) -> &Gauge {
        &self.node.gauge
    }

    /// The present, as the engine sees it.
    pub fn now(&self) -> Timestamp {
        self.node.clock.now()
    }

    /// All bounds.
    pub fn limits(&self) -> &Limits {
        &self.node.limits
    }
}

/// An answer, which is under way until its caller has it.
type Answered<T> = (Result<T, CallError>, Work);

/// Somebody who waits for an answer, and may go away before it is there.
struct Waiting<'a, T> {
    node: &'a Node,
    shard: ShardId,
    ticket: Ticket,
    answered: oneshot::Receiver<Answered<T>>,
    waits: bool,
}

impl<T> Waiting<'_, T> {
    /// The answer is there, or never will be.
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

impl<T> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        if self.waits {
            // A shard that has ended has forgotten it.
            drop(self.node.post(self.shard, Post::Forget(self.ticket)));
        }
    }
}

fn stopped() -> CallError {
    CallError::Unavailable("it has stopped".into())
}

/// The shard is not served here. Nobody else serves those of an engine that is alone.
fn not_served(node: &Node) -> CallError {
    if node.cluster.is_some() { CallError::NotServed } else { stopped() }
}
