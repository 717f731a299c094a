//! Queue of batches, per shard in the order of calls.

use std::collections::{BTreeSet, VecDeque};

use abide_core::ids::ShardId;

use super::Job;

/// Batches of one transaction; batches of the same shard are in order.
pub(super) struct Group {
    pub(super) jobs: Vec<Job>,
    /// Shards of the batches, without duplicates.
    pub(super) shards: Vec<ShardId>,
}

/// Number of writes that justifies a transaction beside one in flight. A transaction costs the
/// database about as much as a hundred rows, regardless of its size; fewer writes than this wait
/// for a while for the transaction before them, and join those that arrive meanwhile.
const BESIDE_WRITES_MIN: usize = 256;

/// Queued batches. The batches of a shard with a transaction in flight wait until it is released.
pub(super) struct WaitingBatches {
    shards: Vec<VecDeque<Job>>,
    /// Shards with batches that may start, oldest first.
    ready: VecDeque<ShardId>,
    under_way: BTreeSet<ShardId>,
    /// Number of writes in the batches of ready shards.
    ready_writes: usize,
    batches_max: usize,
    bytes_max: usize,
}

impl WaitingBatches {
    pub(super) fn new(batches_max: usize, bytes_max: usize) -> Self {
        Self {
            shards: ShardId::all().map(|_| VecDeque::new()).collect(),
            ready: VecDeque::new(),
            under_way: BTreeSet::new(),
            ready_writes: 0,
            batches_max: batches_max.max(1),
            bytes_max,
        }
    }

    pub(super) fn push(&mut self, job: Job) {
        let shard = job.batch.shard;
        let ready = !self.under_way.contains(&shard);
        if ready {
            self.ready_writes += job.batch.writes.len();
        }
        let queue = &mut self.shards[usize::from(shard.number())];
        queue.push_back(job);
        if queue.len() == 1 && ready {
            self.ready.push_back(shard);
        }
    }

    /// Whether any batch may start.
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether enough writes are queued to justify a transaction beside those in flight.
    pub(super) const fn has_many_writes(&self) -> bool {
        self.ready_writes >= BESIDE_WRITES_MIN
    }

    /// Takes the batches of the next transaction. Their shards stay in flight until they are
    /// released.
    pub(super) fn take_group(&mut self) -> Option<Group> {
        let mut group = Group { jobs: Vec::new(), shards: Vec::new() };
        let mut bytes = 0;
        while group.jobs.len() < self.batches_max
            && (group.jobs.is_empty() || bytes < self.bytes_max)
            && let Some(shard) = self.ready.pop_front()
        {
            self.under_way.insert(shard);
            group.shards.push(shard);
            let queue = &mut self.shards[usize::from(shard.number())];
            self.ready_writes -= writes(queue);
            while group.jobs.len() < self.batches_max
                && (group.jobs.is_empty() || bytes < self.bytes_max)
                && let Some(job) = queue.pop_front()
            {
                bytes += job.batch.size();
                group.jobs.push(job);
            }
        }
        (!group.jobs.is_empty()).then_some(group)
    }

    /// Marks the transaction of these shards as ended.
    pub(super) fn release(&mut self, shards: &[ShardId]) {
        for shard in shards {
            self.under_way.remove(shard);
            let queue = &self.shards[usize::from(shard.number())];
            if !queue.is_empty() {
                self.ready.push_back(*shard);
                self.ready_writes += writes(queue);
            }
        }
    }
}

/// Number of writes in the queue of a shard.
fn writes(queue: &VecDeque<Job>) -> usize {
    queue.iter().map(|job| job.batch.writes.len()).sum()
}

#[cfg(test)]
mod tests {
    use abide_core::{ids::RunId, time::Timestamp};
    use abide_store::{Batch, Write};
    use tokio::sync::oneshot;

    use super::*;

    fn job(shard: u8, epoch: u64, writes: usize) -> Job {
        let shard = ShardId::new(shard).unwrap();
        let run = RunId::from_parts(Timestamp::EPOCH, 1);
        let writes = vec![Write::DeleteRun(run); writes];
        Job { batch: Batch { shard, epoch, writes }, reply: oneshot::channel().0 }
    }

    fn taken(waiting: &mut WaitingBatches) -> Vec<(u8, u64)> {
        let jobs = waiting.take_group().map_or_else(Vec::new, |group| group.jobs);
        jobs.iter().map(|job| (job.batch.shard.number(), job.batch.epoch)).collect()
    }

    #[test]
    fn a_shard_in_flight_waits_and_keeps_its_order() {
        let mut waiting = WaitingBatches::new(10, 1 << 20);
        [job(1, 1, 0), job(2, 1, 0), job(1, 2, 0)].into_iter().for_each(|job| waiting.push(job));
        assert_eq!(taken(&mut waiting), [(1, 1), (1, 2), (2, 1)]);
        [job(2, 2, 0), job(3, 1, 0), job(2, 3, 0)].into_iter().for_each(|job| waiting.push(job));
        assert_eq!(taken(&mut waiting), [(3, 1)]);
        assert_eq!(taken(&mut waiting), []);
        waiting.release(&[1, 2].map(|number| ShardId::new(number).unwrap()));
        assert_eq!(taken(&mut waiting), [(2, 2), (2, 3)]);
    }

    #[test]
    fn what_is_ready_is_much_when_it_has_enough_writes() {
        let mut waiting = WaitingBatches::new(10, 1 << 20);
        waiting.push(job(1, 1, BESIDE_WRITES_MIN - 1));
        assert!(!waiting.has_many_writes());
        waiting.push(job(2, 1, 1));
        assert!(waiting.has_many_writes());
        assert_eq!(taken(&mut waiting), [(1, 1), (2, 1)]);
        waiting.push(job(1, 2, BESIDE_WRITES_MIN));
        assert!(!waiting.has_many_writes(), "it waits for its shard");
        waiting.release(&[ShardId::new(1).unwrap()]);
        assert!(waiting.has_many_writes());
    }

    #[test]
    fn a_group_is_bounded_by_batches_and_bytes_and_never_empty() {
        let mut waiting = WaitingBatches::new(2, 1 << 20);
        [job(1, 1, 0), job(1, 2, 0), job(1, 3, 0)].into_iter().for_each(|job| waiting.push(job));
        assert_eq!(taken(&mut waiting), [(1, 1), (1, 2)]);
        let mut waiting = WaitingBatches::new(10, 300);
        [job(1, 1, 9), job(1, 2, 1), job(2, 1, 1)].into_iter().for_each(|job| waiting.push(job));
        assert_eq!(taken(&mut waiting), [(1, 1)]);
        assert_eq!(taken(&mut waiting), [(2, 1)]);
        waiting.release(&[ShardId::new(1).unwrap()]);
        assert_eq!(taken(&mut waiting), [(1, 2)]);
    }
}
