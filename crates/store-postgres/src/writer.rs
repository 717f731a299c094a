//! Group commit. Batches wait in the order of calls, shard by shard. When a connection is free, all that
//! wait go into one transaction, but for shards that have one under way: so the transactions that run
//! at one time never touch the same rows, and batches of a shard keep their order. A second transaction
//! begins beside a first one only if much waits. Callers are answered when their transaction is
//! committed, never before.

use std::sync::{Arc, Mutex, PoisonError};

use abide_core::ids::ShardId;
use abide_store::{Batch, CommitError, counts::Counter};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot,
    },
    task::JoinSet,
};

use crate::{
    Options,
    fault::Fault,
    session::{Lane, boxed},
    tables,
};

mod epochs;
mod group;
mod plan;
mod waiting;

use waiting::{Group, Waiting};

/// What a caller is told.
pub(crate) type Answer = Result<(), CommitError>;

/// A batch, and who waits for it.
pub(crate) struct Job {
    pub(crate) batch: Batch,
    pub(crate) reply: oneshot::Sender<Answer>,
}

/// The way in. When it is dropped, the writer finishes what waits and ends.
pub(crate) struct Writer {
    jobs: UnboundedSender<Job>,
}

impl Writer {
    /// The way in, and the work to be done until it is closed.
    pub(crate) fn new(
        options: &Arc<Options>,
        counter: Arc<Counter>,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (jobs, queue) = unbounded_channel();
        let idle = (0..options.writers.max(1))
            .map(|_| Arc::new(Lane::new(options, tables::WRITES)))
            .collect();
        let desk = Desk {
            queue,
            waiting: Waiting::new(options.group_batches_max, options.group_bytes_max),
            idle,
            under_way: JoinSet::new(),
            shared: Arc::new(Shared { counter, stopped: Mutex::default() }),
        };
        (Self { jobs }, desk.work())
    }

    /// Queues at once, so that order is the order of calls and not of polls.
    pub(crate) fn write(&self, batch: Batch) -> impl Future<Output = Answer> + Send + 'static {
        let (reply, answer) = oneshot::channel();
        let queued = self.jobs.send(Job { batch, reply }).is_ok();
        async move {
            if !queued {
                return Err(CommitError::Stopped("the writer has ended".to_owned()));
            }
            // A writer that ends on the way drops the reply, and nobody knows how far it came.
            let ended = |_| CommitError::Unknown("the writer has ended".to_owned());
            answer.await.map_err(ended)?
        }
    }
}

/// What transactions that run at one time share.
struct Shared {
    counter: Arc<Counter>,
    /// Why nothing is written any more: tables are missing or damaged.
    stopped: Mutex<Option<String>>,
}

impl Shared {
    fn stopped(&self) -> Option<String> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn stop(&self, reason: &str) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        stopped.get_or_insert_with(|| reason.to_owned());
    }
}

/// Hands out groups to lanes.
struct Desk {
    queue: UnboundedReceiver<Job>,
    waiting: Waiting,
    idle: Vec<Arc<Lane>>,
    under_way: JoinSet<(Arc<Lane>, Vec<ShardId>)>,
    shared: Arc<Shared>,
}

impl Desk {
    async fn work(mut self) {
        let mut open = true;
        while open || !self.under_way.is_empty() {
            tokio::select! {
                job = self.queue.recv(), if open => match job {
                    Some(job) => self.waiting.push(job),
                    None => open = false,
                },
                Some(done) = self.under_way.join_next() => self.settled(done),
            }
            while let Ok(job) = self.queue.try_recv() {
                self.waiting.push(job);
            }
            self.hand_out();
        }
    }

    fn settled(&mut self, done: Result<(Arc<Lane>, Vec<ShardId>), tokio::task::JoinError>) {
        // A transaction that panicked keeps its shards: nobody knows how far it came, and its callers
        // were told so by the end of their replies.
        if let Ok((lane, shards)) = done {
            self.waiting.release(&shards);
            self.idle.push(lane);
        }
    }

    fn hand_out(&mut self) {
        while !self.idle.is_empty()
            && (self.under_way.is_empty() || self.waiting.is_much())
            && let Some(group) = self.waiting.take_group()
            && let Some(lane) = self.idle.pop()
        {
            let shared = Arc::clone(&self.shared);
            self.under_way.spawn(async move {
                let shards = group.shards.clone();
                commit(&lane, &shared, group).await;
                (lane, shards)
            });
        }
    }
}

/// Commits the group and answers everyone.
async fn commit(lane: &Lane, shared: &Shared, group: Group) {
    let (batches, replies): (Vec<_>, Vec<_>) =
        group.jobs.into_iter().map(|job| (job.batch, job.reply)).unzip();
    let answers = answers(lane, shared, &batches).await;
    for (reply, answer) in replies.into_iter().zip(answers) {
        // A caller that has gone away no longer wants to know.
        let _ = reply.send(answer);
    }
}

/// Commits the batches together; if one of them is refused, each by itself, so that only the guilty one
/// fails.
async fn answers(lane: &Lane, shared: &Shared, batches: &[Batch]) -> Vec<Answer> {
    let together = attempt(lane, shared, batches).await;
    if batches.len() == 1 || !matches!(together, Err(Fault::Refused(_))) {
        return told(shared, batches.len(), together);
    }
    let mut answers = Vec::with_capacity(batches.len());
    for one in batches.chunks(1) {
        let alone = attempt(lane, shared, one).await;
        answers.extend(told(shared, one.len(), alone));
    }
    answers
}

async fn attempt(lane: &Lane, shared: &Shared, batches: &[Batch]) -> Result<Vec<Answer>, Fault> {
    if let Some(reason) = shared.stopped() {
        return Ok(vec![Err(CommitError::Stopped(reason)); batches.len()]);
    }
    let patience = lane.patience();
    let answers = lane
        .attempt(|session| {
            boxed(async move { group::transaction(&session, batches, patience).await })
        })
        .await?;
    let committed = answers.iter().filter(|answer| answer.is_ok()).count();
    if committed > 0 {
        shared.counter.committed(committed);
    }
    Ok(answers)
}

/// What the callers of a group are told, and whether the writer goes on.
fn told(shared: &Shared, batches: usize, outcome: Result<Vec<Answer>, Fault>) -> Vec<Answer> {
    outcome.unwrap_or_else(|fault| {
        if let Fault::Corrupt(reason) = &fault {
            shared.stop(reason);
        }
        vec![Err(fault.for_writer()); batches]
    })
}
