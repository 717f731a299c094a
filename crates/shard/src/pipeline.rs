//! The commit pipeline of a shard: one commit in flight, strict order, and nothing leaves the shard
//! before what it rests on is durable. Transitions that come while a commit is in flight join the next
//! batch.

use std::collections::BTreeSet;

use abide_core::ids::{RunId, ShardId};
use abide_store::{Batch, Write};

use crate::message::Output;

/// Number of a batch, in order. What rests on batch `n` may leave once `n` is committed.
pub type BatchNumber = u64;

/// Batches on their way to the store.
#[derive(Debug)]
pub struct Pipeline {
    shard: ShardId,
    epoch: u64,
    committed: BatchNumber,
    flight: Option<Group>,
    open: Group,
}

#[derive(Debug, Default)]
struct Group {
    writes: Vec<Write>,
    runs: BTreeSet<RunId>,
    after: Vec<Output>,
}

impl Pipeline {
    /// An empty pipeline of the shard's owner at `epoch`.
    pub fn new(shard: ShardId, epoch: u64) -> Self {
        Self { shard, epoch, committed: 0, flight: None, open: Group::default() }
    }

    /// Adds writes of a run; answers the batch they will be in.
    pub fn push(&mut self, run: Option<RunId>, writes: Vec<Write>) -> BatchNumber {
        self.open.writes.extend(writes);
        self.open.runs.extend(run);
        self.open_number()
    }

    /// Lets an output out once the batch is committed: now, if it is.
    pub fn after(&mut self, batch: BatchNumber, output: Output) -> Option<Output> {
        if batch <= self.committed {
            return Some(output);
        }
        match &mut self.flight {
            Some(flight) if batch == self.committed + 1 => flight.after.push(output),
            _ => self.open.after.push(output),
        }
        None
    }

    /// The batch is durable.
    pub fn durable(&self, batch: BatchNumber) -> bool {
        batch <= self.committed
    }

    /// The next batch for the store, if none is in flight and there is something to write.
    pub fn take_batch(&mut self) -> Option<Batch> {
        if self.flight.is_some() || self.open.writes.is_empty() {
            return None;
        }
        let mut group = std::mem::take(&mut self.open);
        let writes = std::mem::take(&mut group.writes);
        self.flight = Some(group);
        Some(Batch { shard: self.shard, epoch: self.epoch, writes })
    }

    /// The commit in flight succeeded: what waited for it, in order.
    pub fn commit_done(&mut self) -> Vec<Output> {
        let Some(flight) = self.flight.take() else { return Vec::new() };
        self.committed += 1;
        flight.after
    }

    /// The runs whose writes are in flight.
    pub fn runs_in_flight(&self) -> BTreeSet<RunId> {
        self.flight.as_ref().map(|flight| flight.runs.clone()).unwrap_or_default()
    }

    /// Number of the batch that is being filled.
    fn open_number(&self) -> BatchNumber {
        self.committed + 1 + u64::from(self.flight.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipeline() -> Pipeline {
        Pipeline::new(ShardId::new(3).unwrap(), 7)
    }

    fn write(number: u64) -> Write {
        Write::DeleteOutbox { run: RunId::from_slice(&[0; 16]).unwrap(), number }
    }

    fn halted(name: &str) -> Output {
        Output::Halted(name.into())
    }

    fn names(outputs: &[Output]) -> Vec<&str> {
        outputs
            .iter()
            .map(|output| match output {
                Output::Halted(name) => name.as_str(),
                _ => "?",
            })
            .collect()
    }

    #[test]
    fn one_commit_is_in_flight_and_the_rest_joins_the_next() {
        let mut pipeline = pipeline();
        assert!(pipeline.take_batch().is_none());
        let first = pipeline.push(None, vec![write(1)]);
        assert_eq!(pipeline.take_batch().unwrap().writes, [write(1)]);
        let second = pipeline.push(None, vec![write(2)]);
        assert_eq!(pipeline.push(None, vec![write(3)]), second);
        assert!(first < second);
        assert!(pipeline.take_batch().is_none(), "a commit is in flight");
        pipeline.commit_done();
        let batch = pipeline.take_batch().unwrap();
        assert_eq!((batch.epoch, batch.writes), (7, vec![write(2), write(3)]));
    }

    #[test]
    fn outputs_wait_for_their_own_batch() {
        let mut pipeline = pipeline();
        assert!(pipeline.after(0, halted("clean")).is_some());
        let first = pipeline.push(None, vec![write(1)]);
        assert!(pipeline.after(first, halted("first")).is_none());
        pipeline.take_batch();
        let second = pipeline.push(None, vec![write(2)]);
        assert!(pipeline.after(second, halted("second")).is_none());
        assert!(pipeline.after(first, halted("late")).is_none());
        assert_eq!(names(&pipeline.commit_done()), ["first", "late"]);
        assert!(pipeline.after(first, halted("now")).is_some());
        pipeline.take_batch();
        assert_eq!(names(&pipeline.commit_done()), ["second"]);
        assert!(pipeline.durable(second));
    }
}
