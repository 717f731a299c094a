//! Which of the queued batches the next transaction writes. All small ones, and of the large ones the oldest,
//! so that a small one never waits for many megabytes of others, and a large one always gets its turn.

use std::{collections::VecDeque, sync::mpsc::Receiver};

use abide_core::ids::ShardId;

use super::{Job, WriteRequest};

/// Bytes of a batch that counts as large: it takes much longer to write than its transaction.
const LARGE: usize = 64 << 10;

/// Bytes of large batches in one transaction. A single one may have more.
const LARGE_BYTES_MAX: usize = 2 << 20;

/// Bytes of a batch if it is large, and otherwise zero.
pub(super) fn large_bytes(work: &WriteRequest) -> usize {
    match work {
        WriteRequest::Batch(batch) => Some(batch.size()).filter(|it| *it >= LARGE).unwrap_or(0),
        WriteRequest::Registry(_) => 0,
    }
}

/// Queued batches in the order of calls.
pub(super) struct WaitingJobs {
    jobs: VecDeque<Job>,
    batches_max: usize,
}

impl WaitingJobs {
    pub(super) fn new(batches_max: usize) -> Self {
        Self { jobs: VecDeque::new(), batches_max: batches_max.max(1) }
    }

    /// The jobs of the next transaction; waits for one if there is none. `None` when the last sender is
    /// dropped and all is written.
    pub(super) fn next_group(&mut self, queue: &Receiver<Job>) -> Option<Vec<Job>> {
        if self.jobs.is_empty() {
            self.jobs.push_back(queue.recv().ok()?);
        }
        while self.jobs.len() < self.batches_max
            && let Ok(job) = queue.try_recv()
        {
            self.jobs.push_back(job);
        }
        Some(self.take_group())
    }

    /// Batches of one shard keep their order: if one has to wait, so do those behind it.
    fn take_group(&mut self) -> Vec<Job> {
        let (mut group, mut left) = (Vec::new(), VecDeque::new());
        let mut taken = 0;
        let mut waits = [false; ShardId::COUNT as usize];
        for job in self.jobs.drain(..) {
            let bytes = large_bytes(&job.work);
            let shard = match &job.work {
                WriteRequest::Batch(batch) => Some(usize::from(batch.shard.number())),
                WriteRequest::Registry(_) => None,
            };
            let fits = bytes == 0 || taken == 0 || taken + bytes <= LARGE_BYTES_MAX;
            if fits && shard.is_none_or(|shard| !waits[shard]) {
                taken += bytes;
                group.push(job);
            } else {
                if let Some(shard) = shard {
                    waits[shard] = true;
                }
                left.push_back(job);
            }
        }
        self.jobs = left;
        group
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use abide_core::{ids::RunId, time::Timestamp};
    use abide_store::{Batch, Write, rows::SnapshotRow};
    use futures_channel::oneshot;

    use super::*;

    /// A batch of a shard; its epoch tells it from others.
    fn job(shard: u8, epoch: u64, bytes: usize) -> Job {
        let run = RunId::from_parts(Timestamp::EPOCH, 1);
        let row = SnapshotRow { run, sequence: 1, state: vec![7; bytes].into() };
        let (shard, writes) = (ShardId::new(shard).unwrap(), vec![Write::PutSnapshot(row)]);
        let work = WriteRequest::Batch(Batch { shard, epoch, writes });
        Job { work, reply: oneshot::channel().0 }
    }

    /// The groups in which these batches are written, each batch by its shard and epoch.
    fn groups(batches_max: usize, jobs: Vec<Job>) -> Vec<Vec<(u8, u64)>> {
        let (sender, queue) = channel();
        jobs.into_iter().for_each(|job| sender.send(job).unwrap());
        drop(sender);
        let mut waiting = WaitingJobs::new(batches_max);
        let name = |job: Job| match job.work {
            WriteRequest::Batch(batch) => (batch.shard.number(), batch.epoch),
            WriteRequest::Registry(_) => panic!("not a batch"),
        };
        std::iter::from_fn(|| waiting.next_group(&queue))
            .map(|group| group.into_iter().map(name).collect())
            .collect()
    }

    #[test]
    fn small_batches_do_not_wait_for_many_large_ones() {
        let large = 1_900_000;
        let jobs = vec![
            job(1, 1, large),
            job(2, 1, large),
            job(3, 1, large),
            job(4, 1, 10),
            job(5, 1, large),
            job(6, 1, 10),
        ];
        let expected = [vec![(1, 1), (4, 1), (6, 1)], vec![(2, 1)], vec![(3, 1)], vec![(5, 1)]];
        assert_eq!(groups(100, jobs), expected);
    }

    #[test]
    fn large_batches_that_fit_together_are_written_together() {
        let jobs = (1..=4).map(|shard| job(shard, 1, 800_000)).collect();
        assert_eq!(groups(100, jobs), [[(1, 1), (2, 1)], [(3, 1), (4, 1)]]);
        let huge = vec![job(1, 1, 10 * LARGE_BYTES_MAX), job(2, 1, LARGE)];
        assert_eq!(groups(100, huge), [[(1, 1)], [(2, 1)]], "one that is too large goes alone");
    }

    #[test]
    fn batches_of_a_shard_keep_their_order() {
        let large = 1_900_000;
        let jobs = vec![job(1, 1, large), job(2, 1, large), job(2, 2, 10), job(3, 1, 10)];
        assert_eq!(groups(100, jobs), [vec![(1, 1), (3, 1)], vec![(2, 1), (2, 2)]]);
    }

    #[test]
    fn a_group_has_a_bounded_number_of_batches() {
        let jobs = (1..=5).map(|shard| job(shard, 1, 10)).collect();
        assert_eq!(groups(2, jobs), [vec![(1, 1), (2, 1)], vec![(3, 1), (4, 1)], vec![(5, 1)]]);
    }
}
