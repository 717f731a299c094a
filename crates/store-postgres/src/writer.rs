//! Group commit. Batches queue per shard, in the order of calls. When a connection is free, all
//! queued batches go into one transaction, except those of shards that already have a transaction
//! in flight: so concurrent transactions never touch the same rows, and batches of a shard keep
//! their order. A second transaction starts beside the first only if many writes are queued or the
//! first one is slow. Callers get their reply after the commit, never before.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use abide_core::ids::ShardId;
use abide_store::{Batch, CommitError, counts::Counter};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot,
    },
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep_until},
};

use crate::{
    Options,
    fault::Fault,
    session::{Lane, Session, boxed},
    tables,
};

mod epochs;
mod group;
mod plan;
mod statement;
mod waiting;

use waiting::{Group, WaitingBatches};

pub(crate) type CommitResult = Result<(), CommitError>;

/// A batch and the reply channel of its caller.
pub(crate) struct Job {
    pub(crate) batch: Batch,
    pub(crate) reply: oneshot::Sender<CommitResult>,
}

/// Sender of the queue. When it is dropped, the writer commits what is queued and ends. The queue
/// needs no bound: a shard has at most one batch in flight, so at most one batch per shard is
/// queued.
pub(crate) struct Writer {
    jobs: UnboundedSender<Job>,
}

impl Writer {
    /// Returns the sender, and the task that commits until the sender is dropped.
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
            waiting: WaitingBatches::new(options.group_batches_max, options.group_bytes_max),
            idle,
            under_way: JoinSet::new(),
            held: HashMap::new(),
            beside_at: Instant::now(),
            shared: Arc::new(WriterState { counter, stopped: Mutex::default() }),
        };
        (Self { jobs }, desk.work())
    }

    /// Queues the batch synchronously, so that batches keep the order of calls and not of polls.
    pub(crate) fn write(
        &self,
        batch: Batch,
    ) -> impl Future<Output = CommitResult> + Send + 'static {
        let (reply, answer) = oneshot::channel();
        let queued = self.jobs.send(Job { batch, reply }).is_ok();
        async move {
            if !queued {
                return Err(CommitError::Stopped("the writer has ended".to_owned()));
            }
            // A writer that ends before it replies drops the reply channel, and the outcome is
            // unknown.
            let ended = |_| CommitError::Unknown("the writer has ended".to_owned());
            answer.await.map_err(ended)?
        }
    }
}

/// State that concurrent transactions share.
struct WriterState {
    counter: Arc<Counter>,
    /// Set once tables are found missing or damaged; after that every write fails with this reason.
    stopped: Mutex<Option<String>>,
}

impl WriterState {
    fn stopped(&self) -> Option<String> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn stop(&self, reason: &str) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        stopped.get_or_insert_with(|| reason.to_owned());
    }
}

/// Assigns groups of batches to free lanes.
struct Desk {
    queue: UnboundedReceiver<Job>,
    waiting: WaitingBatches,
    idle: Vec<Arc<Lane>>,
    under_way: JoinSet<()>,
    /// What each transaction in flight holds.
    held: HashMap<Id, TransactionHold>,
    /// From when on another transaction may start beside the last one, even for few writes.
    beside_at: Instant,
    shared: Arc<WriterState>,
}

/// How long few writes wait for a transaction in flight. A slow transaction, such as one that waits
/// for the row of a shard that is changing its owner, delays other shards by no more than this.
const BESIDE_AFTER: Duration = Duration::from_millis(20);

/// Lane and shards of a transaction, held until it ends.
struct TransactionHold {
    lane: Arc<Lane>,
    shards: Vec<ShardId>,
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
                Some(ended) = self.under_way.join_next_with_id() => self.settled(ended),
                () = sleep_until(self.beside_at), if self.has_waiting_batches() => {}
            }
            while let Ok(job) = self.queue.try_recv() {
                self.waiting.push(job);
            }
            self.hand_out();
        }
    }

    /// Releases what a transaction held. If it panicked, its callers learn from their dropped reply
    /// channels that the outcome is unknown, and its connection, which may be inside a transaction,
    /// is discarded.
    fn settled(&mut self, ended: Result<(Id, ()), JoinError>) {
        let (id, panicked) = match ended {
            Ok((id, ())) => (id, false),
            Err(error) => (error.id(), true),
        };
        if let Some(TransactionHold { lane, shards }) = self.held.remove(&id) {
            self.waiting.release(&shards);
            self.idle.push(if panicked { Arc::new(lane.without_session()) } else { lane });
        }
    }

    /// Whether batches are queued that could start beside the transactions in flight.
    fn has_waiting_batches(&self) -> bool {
        !self.idle.is_empty() && !self.under_way.is_empty() && self.waiting.is_ready()
    }

    /// Whether a transaction may start now, provided that batches are queued.
    fn may_begin(&self) -> bool {
        self.under_way.is_empty()
            || self.waiting.has_many_writes()
            || Instant::now() >= self.beside_at
    }

    fn hand_out(&mut self) {
        while !self.idle.is_empty()
            && self.may_begin()
            && let Some(group) = self.waiting.take_group()
            && let Some(lane) = self.idle.pop()
        {
            let shared = Arc::clone(&self.shared);
            let held = TransactionHold { lane: Arc::clone(&lane), shards: group.shards.clone() };
            self.begin(held, async move { commit(&lane, &shared, group).await });
        }
    }

    fn begin(
        &mut self,
        held: TransactionHold,
        transaction: impl Future<Output = ()> + Send + 'static,
    ) {
        self.beside_at = Instant::now() + BESIDE_AFTER;
        let task = self.under_way.spawn(transaction);
        self.held.insert(task.id(), held);
    }
}

/// Commits the group and replies to its callers.
async fn commit(lane: &Lane, shared: &WriterState, group: Group) {
    let (batches, replies): (Vec<_>, Vec<_>) =
        group.jobs.into_iter().map(|job| (job.batch, job.reply)).unzip();
    let answers = answers(lane, shared, &batches).await;
    for (reply, answer) in replies.into_iter().zip(answers) {
        // The caller may have stopped waiting.
        let _ = reply.send(answer);
    }
}

/// Commits the batches together. If one is refused, commits each half on its own, recursively, so
/// that only the refused batch fails. The total time is bounded: after the deadline, or when a part
/// fails for any reason other than its batches, the rest is not attempted.
async fn answers(lane: &Lane, shared: &WriterState, batches: &[Batch]) -> Vec<CommitResult> {
    let deadline = lane.deadline();
    let mut answers = Vec::with_capacity(batches.len());
    let mut parts = vec![batches];
    while let Some(part) = parts.pop() {
        let outcome = if part.len() < batches.len() && Instant::now() >= deadline {
            let text = "timed out while searching for the refused batch of a group";
            Err(Fault::Unavailable(text.to_owned()))
        } else {
            attempt(lane, shared, part, deadline).await
        };
        match outcome {
            Ok(told) => answers.extend(told),
            Err(Fault::Refused(error)) if part.len() == 1 => answers.push(Err(error)),
            Err(Fault::Refused(_)) => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
            }
            Err(fault) => {
                let untried = Fault::Unavailable(fault.text());
                answers.extend(fail_all(shared, part.len(), fault));
                answers.extend(fail_all(shared, batches.len() - answers.len(), untried));
                return answers;
            }
        }
    }
    answers
}

async fn attempt(
    lane: &Lane,
    shared: &WriterState,
    batches: &[Batch],
    deadline: Instant,
) -> Result<Vec<CommitResult>, Fault> {
    if let Some(reason) = shared.stopped() {
        return Ok(vec![Err(CommitError::Stopped(reason)); batches.len()]);
    }
    let patience = lane.patience();
    let transaction = |session: Arc<Session>| {
        boxed(async move { group::transaction(&session, batches, patience).await })
    };
    let answers = lane.attempt_until(deadline, transaction).await?;
    let committed = answers.iter().filter(|answer| answer.is_ok()).count();
    if committed > 0 {
        shared.counter.committed(committed);
    }
    Ok(answers)
}

/// Replies to the callers of a failed group, and stops the writer if the tables are damaged.
fn fail_all(shared: &WriterState, batches: usize, fault: Fault) -> Vec<CommitResult> {
    if let Fault::Corrupt(reason) = &fault {
        shared.stop(reason);
    }
    vec![Err(fault.for_writer()); batches]
}

#[cfg(test)]
mod tests {
    use abide_store::Write;

    use super::*;

    fn desk() -> (UnboundedSender<Job>, Desk) {
        let options = Arc::new(Options::new("postgres://host/things").unwrap());
        let (jobs, queue) = unbounded_channel();
        let shared = Arc::new(WriterState { counter: Arc::default(), stopped: Mutex::default() });
        let desk = Desk {
            queue,
            waiting: WaitingBatches::new(10, 1 << 20),
            idle: vec![Arc::new(Lane::new(&options, tables::WRITES))],
            under_way: JoinSet::new(),
            held: HashMap::new(),
            beside_at: Instant::now(),
            shared,
        };
        (jobs, desk)
    }

    fn job() -> (Job, oneshot::Receiver<CommitResult>) {
        let (reply, answer) = oneshot::channel();
        let writes = vec![Write::Claim { epoch: 1, owner: "node".to_owned() }];
        (Job { batch: Batch { shard: ShardId::new(3).unwrap(), epoch: 0, writes }, reply }, answer)
    }

    #[tokio::test]
    async fn a_transaction_that_panics_gives_back_its_lane_and_its_shards() {
        let (_jobs, mut desk) = desk();
        let (first, answer) = job();
        desk.waiting.push(first);
        let group = desk.waiting.take_group().unwrap();
        let lane = desk.idle.pop().unwrap();
        let held = TransactionHold { lane: Arc::clone(&lane), shards: group.shards.clone() };
        desk.begin(held, async move {
            let _group = group;
            panic!("a bug");
        });
        let ended = desk.under_way.join_next_with_id().await.unwrap();
        desk.settled(ended);
        assert!(answer.await.is_err(), "the reply channel is dropped, so the outcome is unknown");
        assert!(desk.held.is_empty());
        assert_eq!(desk.idle.len(), 1);
        assert!(!Arc::ptr_eq(&desk.idle[0], &lane), "the connection is not used again");
        desk.waiting.push(job().0);
        assert!(desk.waiting.take_group().is_some(), "the shard is served again");
    }

    #[tokio::test]
    async fn little_waits_beside_a_transaction_until_that_is_slow() {
        let (_jobs, mut desk) = desk();
        let lane = Arc::clone(&desk.idle[0]);
        assert!(desk.may_begin(), "nothing is in flight");
        let before = Instant::now();
        desk.begin(TransactionHold { lane, shards: Vec::new() }, std::future::pending());
        assert!(desk.beside_at >= before + BESIDE_AFTER);
        assert!(!desk.has_waiting_batches(), "nothing waits");
        desk.waiting.push(job().0);
        assert!(desk.has_waiting_batches());
        desk.beside_at = before + Duration::from_secs(3600);
        assert!(!desk.may_begin());
        desk.beside_at = before;
        assert!(desk.may_begin());
    }
}
