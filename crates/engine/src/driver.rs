//! One task for each thread of the runtime. It drives several shards: feeds their machines with posts,
//! answers of the store and ticks, and carries out the machines' outputs. It handles all that has
//! arrived before it carries anything out, so that a wake-up and a commit serve many messages.

mod shard;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    hash::{BuildHasher as _, RandomState},
    pin::Pin,
    sync::Arc,
};

use abide_core::{
    ids::{RunId, ShardId},
    operation::{CallError, Ticket},
    search::Definitions,
    time::Timestamp,
};
use abide_shard::{
    message::{Fetch, Fetched, Message},
    node::NodeInput,
    shard::Moment,
};
use abide_store::{Batch, ReadError, Store, WaitFilter};
use futures_util::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use self::shard::DrivenShard;
use crate::{
    clock::{Sleep, Steps, since_boot},
    figures::transitions,
    gauge::InFlight,
    node::{Node, Post},
};

/// A post to a shard.
pub(crate) type Posted = (ShardId, Post, InFlight);

/// Posts and answers of the store that are handled before the first output is carried out, each at
/// most.
const TURN_MAX: usize = 64;

pub(crate) struct Driver {
    node: Arc<Node>,
    shards: BTreeMap<ShardId, DrivenShard>,
    posts: mpsc::UnboundedReceiver<Posted>,
    /// Told of each shard that this node no longer serves.
    ended: mpsc::UnboundedSender<ShardId>,
    /// Shards that have received something since their outputs were carried out.
    touched: BTreeSet<ShardId>,
    /// When shards want a tick.
    wakes: BTreeSet<(Timestamp, ShardId)>,
    /// Requests that have not been sent to the store yet.
    requests: Vec<StoreRequest>,
    moments: Moments,
    /// Number of shards that were opened.
    opened: u64,
}

/// A request of a shard to the store.
struct StoreRequest {
    shard: ShardId,
    /// Tells the shard from one with the same id that was served before.
    opening: u64,
    what: Requested,
}

enum Requested {
    Commit(Batch),
    Fetch(Ticket, Fetch),
}

/// Reads and commits in flight.
type StoreWork<'a> = FuturesUnordered<Pin<Box<dyn Future<Output = StoreAnswer> + Send + 'a>>>;

/// An answer of the store.
struct StoreAnswer {
    shard: ShardId,
    opening: u64,
    message: Message,
    work: InFlight,
    /// The run whose log begins with this read, until it is loaded.
    loading: Option<(RunId, OwnedSemaphorePermit)>,
}

impl Driver {
    /// A driver without shards, and the sender of its posts. A shard begins with [`Message::Open`].
    pub(crate) fn new(
        node: Arc<Node>,
        ended: mpsc::UnboundedSender<ShardId>,
    ) -> (Self, mpsc::UnboundedSender<Posted>) {
        let (sender, posts) = mpsc::unbounded_channel();
        let driver = Self {
            moments: Moments { node: Arc::clone(&node), keys: RandomState::new(), drawn: 0 },
            node,
            shards: BTreeMap::new(),
            posts,
            ended,
            touched: BTreeSet::new(),
            wakes: BTreeSet::new(),
            requests: Vec::new(),
            opened: 0,
        };
        (driver, sender)
    }

    /// Runs until all senders of posts are dropped.
    pub(crate) async fn run(mut self) {
        let node = Arc::clone(&self.node);
        let _end = DriverEnd(Arc::clone(&node));
        let mut work = node.gauge.begin();
        let mut in_flight = StoreWork::new();
        let mut sleep: Option<Sleep<'_>> = None;
        let mut steps = Steps::default();
        let mut posts = Vec::new();
        loop {
            let (now, set) = node.look_at_clock(&mut steps);
            let ticked = self.tick(now, set);
            self.carry_out();
            self.ask_store(&node, &mut in_flight);
            if ticked {
                // The store's work has started; other tasks come first.
                tokio::task::yield_now().await;
            }
            // The shards count as idle from when the alarm is set until something arrives.
            let wake_at = self.wakes.first().map_or(Timestamp::NEVER, |(at, _)| *at);
            let kept = sleep.take().filter(|sleep| node.clock.suffices(sleep, wake_at));
            let alarm = sleep.insert(kept.unwrap_or_else(|| node.clock.sleep_until(wake_at)));
            drop(work);
            let mut answer = None;
            tokio::select! {
                biased;
                Some(first) = in_flight.next() => answer = Some(first),
                count = self.posts.recv_many(&mut posts, TURN_MAX) => if count == 0 { break },
                () = alarm => sleep = None,
            }
            // What has arrived counts as in flight until this turn's outputs are carried out.
            work = node.gauge.begin();
            let mut answers = 0;
            while let Some(StoreAnswer { shard, opening, message, work: _work, loading }) =
                answer.take()
            {
                self.answered((shard, opening), message, loading);
                answers += 1;
                if answers < TURN_MAX {
                    answer = in_flight.next().now_or_never().flatten();
                }
            }
            while posts.len() < TURN_MAX
                && let Ok(post) = self.posts.try_recv()
            {
                posts.push(post);
            }
            for (shard, post, _work) in posts.drain(..) {
                self.take(shard, post);
            }
        }
    }

    /// Ticks the shards that want it by now, or all if the clock was set; returns whether there were any.
    fn tick(&mut self, now: Timestamp, set: bool) -> bool {
        let due: Vec<ShardId> = match set {
            true => self.shards.keys().copied().collect(),
            false => {
                self.wakes.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| *id).collect()
            }
        };
        for shard in &due {
            self.handle(*shard, Message::Tick);
        }
        !due.is_empty()
    }

    fn handle(&mut self, id: ShardId, message: Message) {
        if let Some(shard) = self.shards.get_mut(&id) {
            shard.machine.handle(self.moments.next(), message);
            self.touched.insert(id);
        }
    }

    fn answered(
        &mut self,
        (id, opening): (ShardId, u64),
        message: Message,
        loading: Option<(RunId, OwnedSemaphorePermit)>,
    ) {
        if let Some(shard) = self.shards.get_mut(&id).filter(|shard| shard.opening == opening) {
            // A shard that has lost its memory ignores the answer, and may have asked for the same run
            // again: that load waits for a permit of its own.
            let awaited =
                matches!(&message, Message::Fetched(ticket, _) if shard.machine.awaits(*ticket));
            shard.loading.extend(loading.filter(|_| awaited));
            self.handle(id, message);
        }
    }

    fn take(&mut self, id: ShardId, post: Post) {
        if matches!(post, Post::Message(Message::Open)) {
            self.opened += 1;
            self.shards.insert(id, DrivenShard::new(id, &self.node, self.opened));
        }
        let Some(shard) = self.shards.get_mut(&id) else { return self.turn_away(id, post) };
        let message = match post {
            Post::Message(message) => message,
            Post::Ask(ticket, operation, answer) => {
                shard.callers.insert(ticket, answer);
                Message::Ask(ticket, operation)
            }
            Post::Report(ticket, report, answer) => {
                shard.reporters.insert(ticket, answer);
                Message::Report(ticket, report)
            }
            Post::Forget(ticket) => {
                let waited = shard.callers.remove(&ticket).is_some();
                if !waited && shard.reporters.remove(&ticket).is_none() {
                    return;
                }
                Message::Forget(ticket)
            }
        };
        self.handle(id, message);
    }

    /// The shard has ended: calls fail without effect, and messages go back to the node machine.
    fn turn_away(&self, id: ShardId, post: Post) {
        let work = self.node.gauge.begin();
        match post {
            Post::Ask(_, _, answer) => drop(answer.send((Err(CallError::NotServed), work))),
            Post::Report(_, _, answer) => drop(answer.send((Err(CallError::NotServed), work))),
            Post::Message(message) => self.node.tell(NodeInput::Undelivered(id, message)),
            Post::Forget(_) => {}
        }
    }

    /// Carries out the outputs of all shards that have received something.
    fn carry_out(&mut self) {
        while let Some(id) = self.touched.pop_first() {
            let Some(shard) = self.shards.get_mut(&id) else { continue };
            shard.carry_out(&mut self.moments, &mut self.requests);
            let wake_at = shard.machine.wake_at().filter(|_| !shard.ended);
            let before = std::mem::replace(&mut shard.wake_at, wake_at);
            if before != wake_at {
                self.wakes.extend(wake_at.map(|at| (at, id)));
                if let Some(before) = before {
                    self.wakes.remove(&(before, id));
                }
            }
            if shard.ended {
                self.shards.remove(&id);
                // Sending fails only if the node has left.
                let _ = self.ended.send(id);
            }
        }
    }

    /// Sends the shards' requests to the store. Commits are queued in the order of these calls.
    fn ask_store<'a>(&mut self, node: &'a Node, in_flight: &mut StoreWork<'a>) {
        for StoreRequest { shard, opening, what } in self.requests.drain(..) {
            let work = node.gauge.begin();
            in_flight.push(match what {
                Requested::Commit(batch) => {
                    let (begun, transitions) = (since_boot(), transitions(&batch));
                    let committed = node.store.commit(batch);
                    Box::pin(async move {
                        let answer = committed.await;
                        let took = since_boot().saturating_sub(begun);
                        node.counters.committed(took, transitions, &answer);
                        if let Err(error) = &answer {
                            node.watch.commit_failed(shard, error);
                        }
                        let message = Message::Committed(answer);
                        StoreAnswer { shard, opening, message, work, loading: None }
                    })
                }
                Requested::Fetch(ticket, fetch) => Box::pin(async move {
                    let loading = match &fetch {
                        Fetch::Load(run, _) => {
                            // The semaphore is never closed.
                            let permit = Arc::clone(&node.loads).acquire_owned().await;
                            permit.ok().map(|permit| (*run, permit))
                        }
                        _ => None,
                    };
                    let answer = read(&*node.store, shard, fetch).await;
                    if let Err(error) = &answer {
                        node.read_failed(error);
                    }
                    let message = Message::Fetched(ticket, answer);
                    StoreAnswer { shard, opening, message, work, loading }
                }),
            });
        }
    }
}

/// The time and the randomness of each message.
struct Moments {
    node: Arc<Node>,
    /// Randomness is a sequence of numbers, hashed with random keys: asking the operating system each
    /// time would cost as much as many a message.
    keys: RandomState,
    drawn: u64,
}

impl Moments {
    fn next(&mut self) -> Moment {
        self.drawn += 1;
        let half = |number: u8| u128::from(self.keys.hash_one((self.drawn, number)));
        let entropy = half(0) << 64 | half(1);
        Moment { now: self.node.clock.now(), entropy, trusted: self.node.trusted() }
    }
}

/// Detects a driver that ends by a panic, which is a failure of the engine.
struct DriverEnd(Arc<Node>);

impl Drop for DriverEnd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail("a driver of shards has ended by a panic".into());
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
        Fetch::Registered(namespace) => {
            let name = Definitions::registry_name(&namespace);
            let rows = store.registry(name.clone()).await?;
            Fetched::Registered(rows.into_iter().find(|row| row.name == name))
        }
        Fetch::Stranded(after, limit) => {
            Fetched::Stranded(store.stranded(shard, after, limit).await?)
        }
    })
}
