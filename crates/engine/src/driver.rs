//! One task per shard. It takes what comes, lets the machine step, and carries out what it asks for;
//! reads and commits run beside it and come back as messages.

use std::{collections::BTreeMap, sync::Arc};

use abide_core::{call::Ticket, ids::ShardId, time::Timestamp};
use abide_shard::{
    message::{Fetch, Fetched, Message, Output},
    queue::QueueMessage,
    shard::{Moment, Shard},
};
use abide_store::{ReadError, Store};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    gauge::Work,
    node::{Answer, Node, Post},
};

pub(crate) struct Driver {
    id: ShardId,
    node: Arc<Node>,
    shard: Shard,
    /// Callers that have no answer yet.
    callers: BTreeMap<Ticket, Answer>,
    posts: mpsc::UnboundedReceiver<(Post, Work)>,
    /// Reads and commits that have not come back.
    under_way: usize,
    closing: bool,
    halted: bool,
}

impl Driver {
    pub(crate) fn new(
        id: ShardId,
        node: Arc<Node>,
        posts: mpsc::UnboundedReceiver<(Post, Work)>,
    ) -> Self {
        let shard = Shard::new(id, node.name.clone(), Arc::clone(&node.limits));
        let callers = BTreeMap::new();
        Self { id, node, shard, callers, posts, under_way: 0, closing: false, halted: false }
    }

    /// Runs until the engine closes and everything in flight has come back.
    pub(crate) async fn run(mut self) {
        let clock = Arc::clone(&self.node.clock);
        let mut work = self.node.gauge.begin();
        let mut end = End { node: Arc::clone(&self.node), well: false };
        self.step(Message::Open);
        while !(self.halted || self.closing && self.under_way == 0) {
            // A shard that closes only waits for what is under way.
            let wake_at = self.shard.wake_at().filter(|_| !self.closing);
            let wake_at = wake_at.unwrap_or(Timestamp::NEVER);
            if wake_at <= clock.now() {
                self.step(Message::Tick);
                tokio::task::yield_now().await;
            }
            // The shard is idle from when its alarm is set until it takes something.
            let mut sleep = clock.sleep_until(wake_at);
            drop(work);
            let post = tokio::select! {
                biased;
                post = self.posts.recv() => match post {
                    Some(post) => Some(post),
                    None => return,
                },
                () = &mut sleep => None,
            };
            work = self.node.gauge.begin();
            drop(sleep);
            // What the post was is under way until it is carried out.
            if let Some((post, _work)) = post {
                self.take(post);
            }
        }
        end.well = true;
    }

    fn take(&mut self, post: Post) {
        match post {
            Post::Message(message) => {
                if matches!(message, Message::Fetched(..) | Message::Committed(_)) {
                    self.under_way -= 1;
                }
                self.step(message);
            }
            // A caller that comes now is told by the end of the way back.
            Post::Call(..) if self.closing => {}
            Post::Call(ticket, call, answer) => {
                self.callers.insert(ticket, answer);
                self.step(Message::Call(ticket, call));
            }
            Post::Forget(ticket) => {
                if self.callers.remove(&ticket).is_some() {
                    self.step(Message::Forget(ticket));
                }
            }
            Post::Close => self.closing = true,
        }
    }

    fn step(&mut self, message: Message) {
        let entropy = Uuid::new_v4().as_u128();
        let moment = Moment { now: self.node.clock.now(), entropy };
        self.shard.handle(moment, message);
        while let Some(output) = self.shard.poll() {
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: Output) {
        let node = &self.node;
        match output {
            Output::Fetch(ticket, fetch) => self.fetch(ticket, fetch),
            Output::Commit(batch) => {
                self.under_way += 1;
                let (node, id, work) = (Arc::clone(node), self.id, node.gauge.begin());
                tokio::spawn(async move {
                    let result = node.store.commit(batch).await;
                    node.post(id, Post::Message(Message::Committed(result)));
                    drop(work);
                });
            }
            Output::Reply(ticket, reply) => {
                if let Some(answer) = self.callers.remove(&ticket) {
                    // A caller that has gone needs no answer.
                    drop(answer.send((reply, node.gauge.begin())));
                }
            }
            Output::Offer(offer) => node.queue(QueueMessage::Offer(offer)),
            Output::Dispatch(worker, dispatch) => node.dispatch(&worker, *dispatch),
            Output::Unmatched(offer, worker) => {
                node.queue(QueueMessage::Unmatched(offer, worker));
            }
            Output::Deliver(shard, envelope) => {
                node.post(shard, Post::Message(Message::Deliver(envelope)));
            }
            Output::Answer(shard, key, answer) => {
                node.post(shard, Post::Message(Message::Answered(key, answer)));
            }
            Output::Confirm(shard, key) => {
                node.post(shard, Post::Message(Message::Confirmed(key)));
            }
            Output::Opened => {
                node.opened(self.id);
                node.ask_for_attempts(self.id);
            }
            Output::Closed => node.queue(QueueMessage::ShardClosed(self.id)),
            Output::Halted(reason) => {
                tracing::error!(shard = %self.id, reason, "a shard has stopped");
                node.queue(QueueMessage::ShardClosed(self.id));
                node.opened(self.id);
                node.fail(reason);
                self.halted = true;
            }
        }
    }

    fn fetch(&mut self, ticket: Ticket, fetch: Fetch) {
        self.under_way += 1;
        let (node, id, work) = (Arc::clone(&self.node), self.id, self.node.gauge.begin());
        tokio::spawn(async move {
            let fetched = read(&*node.store, id, fetch).await;
            node.post(id, Post::Message(Message::Fetched(ticket, fetched)));
            drop(work);
        });
    }
}

/// The end of a driver. One that nobody asked for is a failure of the engine.
struct End {
    node: Arc<Node>,
    /// It was asked for, or its reason has been told.
    well: bool,
}

impl Drop for End {
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
        Fetch::Snapshot(run) => Fetched::Snapshot(store.snapshot(shard, run).await?),
        Fetch::Log(run, after, limit) => Fetched::Log(store.log(shard, run, after, limit).await?),
        Fetch::Tasks(after, limit) => Fetched::Tasks(store.tasks(shard, after, limit).await?),
        Fetch::Due(after, until, limit) => {
            Fetched::Due(store.due(shard, after, until, limit).await?)
        }
        Fetch::Outbox(after, limit) => Fetched::Outbox(store.outbox(shard, after, limit).await?),
        Fetch::Inbox(run, number) => Fetched::Inbox(store.inbox(shard, run, number).await?),
        Fetch::Stranded(after, limit) => Fetched::Runs(store.stranded(shard, after, limit).await?),
    })
}
