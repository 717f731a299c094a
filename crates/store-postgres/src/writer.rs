//! Group commit. Batches wait in the order of calls, shard by shard. When a connection is free, all that
//! wait go into one transaction, but for shards that have one under way: so the transactions that run
//! at one time never touch the same rows, and batches of a shard keep their order. A second transaction
//! begins beside a first one only if much waits or the first is slow. Callers are answered when their
//! transaction is committed, never before.

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
mod waiting;

use waiting::{Group, Waiting};

/// What a caller is told.
pub(crate) type Answer = Result<(), CommitError>;

/// A batch, and who waits for it.
pub(crate) struct Job {
    pub(crate) batch: Batch,
    pub(crate) reply: oneshot::Sender<Answer>,
}

/// The way in. When it is dropped, the writer finishes what waits and ends. The queue needs no bound of its
/// own: a shard has one batch under way, so no more wait than there are shards.
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
            held: HashMap::new(),
            beside_at: Instant::now(),
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
    under_way: JoinSet<()>,
    /// What each transaction that is under way holds.
    held: HashMap<Id, Held>,
    /// When another transaction goes out beside the last that began, however little waits.
    beside_at: Instant,
    shared: Arc<Shared>,
}

/// How long little waits for a transaction that is under way. A slow one, such as one that waits for a
/// row of a shard which is being taken, holds up other shards no longer than this.
const BESIDE_AFTER: Duration = Duration::from_millis(20);

/// What a transaction holds until it has ended.
struct Held {
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
                () = sleep_until(self.beside_at), if self.holds_back() => {}
            }
            while let Ok(job) = self.queue.try_recv() {
                self.waiting.push(job);
            }
            self.hand_out();
        }
    }

    /// Frees what a transaction held. If it panicked, its callers were told by the end of their replies
    /// that nobody knows how far it came; its connection, which may be in the middle of something, is
    /// given up.
    fn settled(&mut self, ended: Result<(Id, ()), JoinError>) {
        let (id, panicked) = match ended {
            Ok((id, ())) => (id, false),
            Err(error) => (error.id(), true),
        };
        if let Some(Held { lane, shards }) = self.held.remove(&id) {
            self.waiting.release(&shards);
            self.idle.push(if panicked { Arc::new(lane.anew()) } else { lane });
        }
    }

    /// Something waits that could go out beside what is under way.
    fn holds_back(&self) -> bool {
        !self.idle.is_empty() && !self.under_way.is_empty() && self.waiting.is_ready()
    }

    /// Whether a transaction may go out now, if there is something to write.
    fn may_begin(&self) -> bool {
        self.under_way.is_empty() || self.waiting.is_much() || Instant::now() >= self.beside_at
    }

    fn hand_out(&mut self) {
        while !self.idle.is_empty()
            && self.may_begin()
            && let Some(group) = self.waiting.take_group()
            && let Some(lane) = self.idle.pop()
        {
            let shared = Arc::clone(&self.shared);
            let held = Held { lane: Arc::clone(&lane), shards: group.shards.clone() };
            self.begin(held, async move { commit(&lane, &shared, group).await });
        }
    }

    fn begin(&mut self, held: Held, transaction: impl Future<Output = ()> + Send + 'static) {
        self.beside_at = Instant::now() + BESIDE_AFTER;
        let task = self.under_way.spawn(transaction);
        self.held.insert(task.id(), held);
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

/// Commits the batches together. If one of them is refused, each half by itself, and so on, so that only
/// the guilty one fails. The whole is bounded: once the time is over, or a part fails for another reason
/// than its batches, the rest is not tried.
async fn answers(lane: &Lane, shared: &Shared, batches: &[Batch]) -> Vec<Answer> {
    let deadline = lane.deadline();
    let mut answers = Vec::with_capacity(batches.len());
    let mut parts = vec![batches];
    while let Some(part) = parts.pop() {
        let outcome = if part.len() < batches.len() && Instant::now() >= deadline {
            let text = "there was no time to find out which batch of a group is refused";
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
                answers.extend(told(shared, part.len(), fault));
                answers.extend(told(shared, batches.len() - answers.len(), untried));
                return answers;
            }
        }
    }
    answers
}

async fn attempt(
    lane: &Lane,
    shared: &Shared,
    batches: &[Batch],
    deadline: Instant,
) -> Result<Vec<Answer>, Fault> {
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

/// What the callers of a group are told that failed, and whether the writer goes on.
fn told(shared: &Shared, batches: usize, fault: Fault) -> Vec<Answer> {
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
        let shared = Arc::new(Shared { counter: Arc::default(), stopped: Mutex::default() });
        let desk = Desk {
            queue,
            waiting: Waiting::new(10, 1 << 20),
            idle: vec![Arc::new(Lane::new(&options, tables::WRITES))],
            under_way: JoinSet::new(),
            held: HashMap::new(),
            beside_at: Instant::now(),
            shared,
        };
        (jobs, desk)
    }

    fn job() -> (Job, oneshot::Receiver<Answer>) {
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
        let held = Held { lane: Arc::clone(&lane), shards: group.shards.clone() };
        desk.begin(held, async move {
            let _group = group;
            panic!("a bug");
        });
        let ended = desk.under_way.join_next_with_id().await.unwrap();
        desk.settled(ended);
        assert!(answer.await.is_err(), "nobody answers, which its caller is told as unknown");
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
        assert!(desk.may_begin(), "nothing is under way");
        let before = Instant::now();
        desk.begin(Held { lane, shards: Vec::new() }, std::future::pending());
        assert!(desk.beside_at >= before + BESIDE_AFTER);
        assert!(!desk.holds_back(), "nothing waits");
        desk.waiting.push(job().0);
        assert!(desk.holds_back());
        desk.beside_at = before + Duration::from_secs(3600);
        assert!(!desk.may_begin());
        desk.beside_at = before;
        assert!(desk.may_begin());
    }
}
