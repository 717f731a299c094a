//! One task per shard. It feeds the shard machine with posts, answers of the store and ticks, and
//! carries out the machine's outputs.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    pin::Pin,
    sync::Arc,
};

use abide_core::{
    ids::{RunId, ShardId},
    operation::{AnyAnswer, CallError, Ticket},
    report::ReportAnswer,
    time::Timestamp,
};
use abide_shard::{
    message::{Fetch, Fetched, Message, Output},
    node::NodeInput,
    shard::{Moment, Shard},
};
use abide_store::{Batch, ReadError, Store, WaitFilter};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use uuid::Uuid;

use crate::{
    clock::{Sleep, Steps, since_boot},
    figures::transitions,
    gauge::InFlight,
    node::{Node, Post, ReplySender},
};

pub(crate) struct Driver {
    id: ShardId,
    node: Arc<Node>,
    shard: Shard,
    /// Reply channels of clients and operators that wait for an answer.
    callers: BTreeMap<Ticket, ReplySender<AnyAnswer>>,
    /// Reply channels of workers that wait for an acknowledgement.
    reporters: BTreeMap<Ticket, ReplySender<ReportAnswer>>,
    posts: mpsc::UnboundedReceiver<(Post, InFlight)>,
    /// Matches of work that this shard has just offered.
    matched: VecDeque<Message>,
    /// Requests that have not been sent to the store yet.
    requests: VecDeque<StoreRequest>,
    /// Runs that are being loaded. Large ones count until what was then written is durable, because they
    /// cannot leave before.
    loading: BTreeMap<RunId, OwnedSemaphorePermit>,
    /// This node no longer serves the shard.
    ended: bool,
}

/// A request of a shard to the store.
enum StoreRequest {
    Commit(Batch),
    Fetch(Ticket, Fetch),
}

/// Reads and commits in flight.
type StoreWork<'a> = FuturesUnordered<Pin<Box<dyn Future<Output = StoreAnswer> + Send + 'a>>>;

/// An answer of the store.
struct StoreAnswer {
    message: Message,
    work: InFlight,
    /// The run whose log begins with this read, until it is loaded.
    loading: Option<(RunId, OwnedSemaphorePermit)>,
}

impl Driver {
    pub(crate) fn new(
        id: ShardId,
        node: Arc<Node>,
        posts: mpsc::UnboundedReceiver<(Post, InFlight)>,
    ) -> Self {
        Self {
            id,
            shard: Shard::new(id, node.owner.clone(), Arc::clone(&node.limits))
                .with_borders(Arc::clone(&node.borders)),
            node,
            callers: BTreeMap::new(),
            reporters: BTreeMap::new(),
            posts,
            matched: VecDeque::new(),
            requests: VecDeque::new(),
            loading: BTreeMap::new(),
            ended: false,
        }
    }

    /// Runs until the shard is released or lost; returns the shard. Later posts are turned away.
    pub(crate) async fn run(mut self) -> ShardId {
        let node = Arc::clone(&self.node);
        let mut work = node.gauge.begin();
        let mut end = DriverEnd { node: Arc::clone(&node), well: false };
        let mut in_flight = StoreWork::new();
        let mut sleep: Option<Sleep<'_>> = None;
        let mut steps = Steps::default();
        self.step(Message::Open);
        loop {
            let wake_at = self.shard.wake_at().unwrap_or(Timestamp::NEVER);
            let (now, set) = node.look_at_clock(&mut steps);
            if set || wake_at <= now {
                self.step(Message::Tick);
                // Start the store's work before yielding to other tasks.
                self.ask_store(&node, &mut in_flight);
                tokio::task::yield_now().await;
            }
            self.ask_store(&node, &mut in_flight);
            if self.ended {
                break;
            }
            // The shard counts as idle from when its alarm is set until it receives something.
            let kept = sleep.take().filter(|sleep| node.clock.suffices(sleep, wake_at));
            let alarm = sleep.insert(kept.unwrap_or_else(|| node.clock.sleep_until(wake_at)));
            drop(work);
            let (next, _work) = tokio::select! {
                biased;
                Some(StoreAnswer { message, work, loading }) = in_flight.next() => {
                    self.loading.extend(loading);
                    (Some(Post::Message(message)), Some(work))
                }
                post = self.posts.recv() => match post {
                    Some((post, work)) => (Some(post), Some(work)),
                    None => break,
                },
                () = alarm => {
                    sleep = None;
                    (None, None)
                }
            };
            work = node.gauge.begin();
            // The post counts as in flight until it is carried out.
            if let Some(post) = next {
                self.take(post);
            }
        }
        self.posts.close();
        while let Ok((post, _work)) = self.posts.try_recv() {
            self.turn_away(post);
        }
        end.well = true;
        self.id
    }

    /// Sends the shard's requests to the store. Commits are queued in the order of these calls.
    fn ask_store<'a>(&mut self, node: &'a Node, in_flight: &mut StoreWork<'a>) {
        let id = self.id;
        for request in self.requests.drain(..) {
            let work = node.gauge.begin();
            in_flight.push(match request {
                StoreRequest::Commit(batch) => {
                    let (begun, transitions) = (since_boot(), transitions(&batch));
                    let committed = node.store.commit(batch);
                    Box::pin(async move {
                        let answer = committed.await;
                        let took = since_boot().saturating_sub(begun);
                        node.counters.committed(took, transitions, &answer);
                        if let Err(error) = &answer {
                            node.watch.commit_failed(id, error);
                        }
                        StoreAnswer { message: Message::Committed(answer), work, loading: None }
                    })
                }
                StoreRequest::Fetch(ticket, fetch) => Box::pin(async move {
                    let loading = match &fetch {
                        Fetch::Load(run, _) => {
                            // The semaphore is never closed.
                            let permit = Arc::clone(&node.loads).acquire_owned().await;
                            permit.ok().map(|permit| (*run, permit))
                        }
                        _ => None,
                    };
                    let answer = read(&*node.store, id, fetch).await;
                    if let Err(error) = &answer {
                        node.read_failed(error);
                    }
                    StoreAnswer { message: Message::Fetched(ticket, answer), work, loading }
                }),
            });
        }
    }

    fn take(&mut self, post: Post) {
        match post {
            Post::Message(message) => self.step(message),
            Post::Ask(ticket, operation, answer) => {
                self.callers.insert(ticket, answer);
                self.step(Message::Ask(ticket, operation));
            }
            Post::Report(ticket, report, answer) => {
                self.reporters.insert(ticket, answer);
                self.step(Message::Report(ticket, report));
            }
            Post::Forget(ticket) => {
                let waited = self.callers.remove(&ticket).is_some();
                if waited || self.reporters.remove(&ticket).is_some() {
                    self.step(Message::Forget(ticket));
                }
            }
        }
    }

    /// The shard has ended: calls fail without effect, and messages go back to the node machine.
    fn turn_away(&self, post: Post) {
        match post {
            Post::Ask(_, _, answer) => {
                drop(answer.send((Err(CallError::NotServed), self.node.gauge.begin())));
            }
            Post::Report(_, _, answer) => {
                drop(answer.send((Err(CallError::NotServed), self.node.gauge.begin())));
            }
            Post::Message(message) => self.node.tell(NodeInput::Undelivered(self.id, message)),
            Post::Forget(_) => {}
        }
    }

    fn step(&mut self, message: Message) {
        let mut next = Some(message);
        while let Some(message) = next {
            let entropy = Uuid::new_v4().as_u128();
            let trusted = self.node.trusted();
            let moment = Moment { now: self.node.clock.now(), entropy, trusted };
            self.shard.handle(moment, message);
            while let Some(output) = self.shard.poll() {
                self.carry_out(output);
            }
            next = self.matched.pop_front();
        }
        if !self.loading.is_empty() {
            self.loading.retain(|run, _| self.shard.is_arriving(*run));
        }
        let fired = self.shard.take_fired();
        if fired > 0 {
            self.node.counters.timers_fired.add(fired);
        }
    }

    fn carry_out(&mut self, output: Output) {
        let node = &self.node;
        match output {
            Output::Fetch(ticket, fetch) => {
                // A run that is loaded from the start again waits for its turn again: if it kept the
                // permit that it has, such runs could wait for each other.
                if let Fetch::Load(run, _) = &fetch {
                    self.loading.remove(run);
                }
                self.requests.push_back(StoreRequest::Fetch(ticket, fetch));
            }
            Output::Commit(batch) => self.requests.push_back(StoreRequest::Commit(batch)),
            Output::Reply(ticket, reply) => {
                if let Some(answer) = self.callers.remove(&ticket) {
                    // Sending fails if the caller has disconnected.
                    drop(answer.send((reply, node.gauge.begin())));
                }
            }
            Output::Acknowledge(ticket, acknowledged) => {
                if let Some(answer) = self.reporters.remove(&ticket) {
                    drop(answer.send((acknowledged, node.gauge.begin())));
                }
            }
            Output::Offer(offer) => node.offer(offer, &mut self.matched),
            Output::Dispatch(worker, work) => node.tell(NodeInput::Dispatch(worker, work)),
            Output::Unmatched(offer, worker) => node.tell(NodeInput::Unmatched(offer, worker)),
            Output::Mail(shard, mail) => node.tell(NodeInput::Mail(shard, mail)),
            Output::Opened => node.opened(self.id),
            Output::Closed => node.tell(NodeInput::Closed(self.id)),
            Output::Released => self.ended = true,
            Output::Halted(why) => {
                node.settled_in(self.id);
                node.halted(self.id, &why);
                self.ended = true;
            }
            Output::Notice(notice) => node.notice(self.id, &notice),
        }
    }
}

/// Detects the end of a driver: an unexpected one is a failure of the engine.
struct DriverEnd {
    node: Arc<Node>,
    /// The end was requested, or its reason was reported.
    well: bool,
}

impl Drop for DriverEnd {
    fn drop(&mut self) {
        if !self.well {
            self.node.fail("a shard's driver has ended by a panic".into());
        }
    }
}

async fn read(store: &dyn Store, shard: ShardId, fetch: Fetch) -> Result<Fetched, ReadError> {
    Ok(match fetch {
        Fetch::Shard => Fetched::Shard(store.shard(shard).await?),
        Fetch::RunsOf(runs, limit) => Fetched::Runs(store.runs_of(shard, runs, limit).await?),
        Fetch::Load(run, limit) => Fetched::Load(store.load(shard, run, limit).await?),
        Fetch::Log(run, after, limit) => Fetched::Log(store.log(shard, run, after, limit).await?),
        Fetch::Tasks(after, limit) => Fetched::Tasks(store.tasks(shard, after, limit).await?),
        Fetch::Due(after, until, limit) => {
            Fetched::Due(store.due(shard, after, until, limit).await?)
        }
        Fetch::Outbox(after, limit) => Fetched::Outbox(store.outbox(shard, after, limit).await?),
        Fetch::Inbox(run, number) => Fetched::Inbox(store.inbox(shard, run, number).await?),
        Fetch::WaitsOf(run, limit) => {
            let filter = WaitFilter { run: Some((shard, run)), ..WaitFilter::default() };
            let rows = store.waits(filter, limit).await?;
            Fetched::Waits(rows.into_iter().map(|(_, row)| row).collect())
        }
        Fetch::Stranded(after, limit) => {
            Fetched::Stranded(store.stranded(shard, after, limit).await?)
        }
    })
}
