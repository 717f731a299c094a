//! What all parts of one engine share: the store, the clock, the queues, the way to each shard.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use abide_core::{
    call::{CallError, CallReply, Dispatch, Ticket, Worker},
    ids::{SessionId, ShardId},
    limits::Limits,
};
use abide_shard::{
    message::Message,
    queue::{QueueMessage, QueueOutput, Queues},
};
use abide_store::Store;
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    clock::Clock,
    gauge::{Gauge, Work},
    session::Given,
};

/// An answer on its way to its caller. It is under way until the caller has it.
pub(crate) type Answer = oneshot::Sender<(Result<CallReply, CallError>, Work)>;

/// What a driver takes.
#[derive(Debug)]
pub(crate) enum Post {
    /// For the machine.
    Message(Message),
    /// A call, with the way back.
    Call(Ticket, Box<abide_core::call::Call>, Answer),
    /// Nobody waits for the answer any more.
    Forget(Ticket),
    /// Finish what is in flight, then end.
    Close,
}

/// What all parts of one engine share.
pub(crate) struct Node {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) name: String,
    pub(crate) gauge: Gauge,
    shards: BTreeMap<ShardId, mpsc::UnboundedSender<(Post, Work)>>,
    queues: Mutex<Queues>,
    sessions: Mutex<Streams>,
    /// Shards that have not been in memory yet.
    unopened: watch::Sender<BTreeSet<ShardId>>,
    /// Why the engine cannot serve all of its shards any more.
    failed: watch::Sender<Option<String>>,
}

impl Node {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        limits: Limits,
        name: String,
        shards: BTreeMap<ShardId, mpsc::UnboundedSender<(Post, Work)>>,
    ) -> Self {
        let queues = Mutex::new(Queues::new(limits.queued_offers));
        let limits = Arc::new(limits);
        let unopened = watch::Sender::new(shards.keys().copied().collect());
        let (gauge, sessions) = (Gauge::new(clock.moved_by_hand()), Mutex::default());
        let failed = watch::Sender::new(None);
        Self { store, clock, limits, name, gauge, shards, queues, sessions, unopened, failed }
    }

    /// Sends something to a shard. A shard that has ended takes nothing; its callers see the end.
    pub(crate) fn post(&self, shard: ShardId, post: Post) {
        if let Some(sender) = self.shards.get(&shard) {
            drop(sender.send((post, self.gauge.begin())));
        }
    }

    pub(crate) fn post_all(&self, message: &Message) {
        for shard in self.shards.keys() {
            self.post(*shard, Post::Message(message.clone()));
        }
    }

    /// Tells the queues, and tells shards what they answer.
    pub(crate) fn queue(&self, message: QueueMessage) {
        for output in self.ask_queues(message) {
            self.pass_on(output);
        }
    }

    /// Tells the queues; what they answer must be passed on.
    pub(crate) fn ask_queues(&self, message: QueueMessage) -> Vec<QueueOutput> {
        let mut queues = lock(&self.queues);
        queues.handle(message);
        std::iter::from_fn(|| queues.poll()).collect()
    }

    /// Tells shards what the queues answered.
    pub(crate) fn pass_on(&self, output: QueueOutput) {
        match output {
            QueueOutput::Match(offer, worker) => {
                let shard = offer.shard;
                self.post(shard, Post::Message(Message::Matched(offer, worker)));
            }
            QueueOutput::Refill(queue) => self.post_all(&Message::Refill(queue)),
            QueueOutput::NewBuild(queue, build) => {
                self.post_all(&Message::NewBuild(queue, build));
            }
        }
    }

    /// Opens a stream for the session. A stream that the session had before has ended by that,
    /// though its end may not have been noticed yet.
    pub(crate) fn connect(&self, session: &SessionId) -> (u64, Stream) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (stream, replaced) = {
            let mut streams = lock(&self.sessions);
            streams.opened += 1;
            let stream = streams.opened;
            (stream, streams.open.insert(session.clone(), (stream, sender)).is_some())
        };
        if replaced {
            self.lose(session);
        }
        (stream, receiver)
    }

    /// A stream has ended.
    pub(crate) fn disconnect(&self, session: &SessionId, stream: u64) {
        {
            let mut streams = lock(&self.sessions);
            if streams.open.get(session).is_none_or(|(open, _)| *open != stream) {
                return;
            }
            streams.open.remove(session);
        }
        self.lose(session);
    }

    /// Tells the queues something about a stream's credit, unless the stream has ended or was replaced.
    pub(crate) fn queue_for(&self, session: &SessionId, stream: u64, message: QueueMessage) {
        // Held meanwhile, so that the end of the stream comes after this.
        let streams = lock(&self.sessions);
        if streams.open.get(session).is_some_and(|(open, _)| *open == stream) {
            self.queue(message);
        }
    }

    fn lose(&self, session: &SessionId) {
        self.queue(QueueMessage::Gone(session.clone()));
        self.post_all(&Message::SessionLost(session.clone()));
    }

    /// The streams of all workers end.
    pub(crate) fn disconnect_all(&self) {
        lock(&self.sessions).open.clear();
    }

    /// A shard is in memory for the first time, or will never be.
    pub(crate) fn opened(&self, shard: ShardId) {
        self.unopened.send_if_modified(|unopened| unopened.remove(&shard));
    }

    /// A shard cannot be served any more. The first reason counts.
    pub(crate) fn fail(&self, reason: String) {
        self.failed.send_if_modified(|failed| {
            let first = failed.is_none();
            failed.get_or_insert(reason);
            first
        });
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
        drop(self.unopened.subscribe().wait_for(BTreeSet::is_empty).await);
    }

    /// A shard is in memory again and does not know who has which attempt.
    pub(crate) fn ask_for_attempts(&self, shard: ShardId) {
        for (_, sender) in lock(&self.sessions).open.values() {
            // A worker that has gone has nothing to present.
            drop(sender.send((Given::PresentAttempts(shard), self.gauge.begin())));
        }
    }

    /// Gives work to a worker; one that is gone loses it as if its stream had ended.
    pub(crate) fn dispatch(&self, worker: &Worker, dispatch: Dispatch) {
        let sent = lock(&self.sessions).open.get(&worker.session).is_some_and(|(_, sender)| {
            sender.send((Given::Work(dispatch), self.gauge.begin())).is_ok()
        });
        if !sent {
            self.post_all(&Message::SessionLost(worker.session.clone()));
        }
    }
}

/// What comes on the stream of a session.
pub(crate) type Stream = mpsc::UnboundedReceiver<(Given, Work)>;

/// The open streams of sessions. A session has one; streams are numbered, because the end of an old
/// one may be noticed after a new one was opened.
#[derive(Default)]
struct Streams {
    open: BTreeMap<SessionId, (u64, mpsc::UnboundedSender<(Given, Work)>)>,
    opened: u64,
}

/// The data behind these locks is whole whenever they are released, also by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
