//! The commit pipeline of a shard: one commit in flight, in strict order. An output leaves the
//! shard only when the batch that it depends on is durable. Transitions made while a commit is in
//! flight join the next batch.

use std::collections::{BTreeSet, VecDeque};

use abide_core::ids::{RunId, ShardId};
use abide_store::{Batch, Write};

use crate::message::Output;

/// Sequence number of a batch. Outputs that depend on batch `n` are released once `n` is committed.
pub type BatchNumber = u64;

/// Batches in flight and waiting for the store.
#[derive(Debug)]
pub struct Pipeline {
    shard: ShardId,
    epoch: u64,
    committed: BatchNumber,
    flight: Option<CommitGroup>,
    /// Waiting groups, oldest first; new writes join the last one unless it is sealed.
    open: VecDeque<CommitGroup>,
    /// Each message gets a batch of its own: the store refused a batch, and the next refusal must
    /// identify the run at fault.
    alone: bool,
}

#[derive(Debug, Default)]
struct CommitGroup {
    writes: Vec<Write>,
    runs: BTreeSet<RunId>,
    /// Runs whose first log row is in the group.
    begun: BTreeSet<RunId>,
    after: Vec<Output>,
    sealed: bool,
}

impl Pipeline {
    /// An empty pipeline of the shard's owner at `epoch`.
    pub fn new(shard: ShardId, epoch: u64, alone: bool) -> Self {
        Self { shard, epoch, committed: 0, flight: None, open: VecDeque::new(), alone }
    }

    /// Adds writes of a run; returns the batch that will hold them.
    pub fn push(&mut self, run: Option<RunId>, writes: Vec<Write>) -> BatchNumber {
        if self.open.back().is_none_or(|group| group.sealed) {
            self.open.push_back(CommitGroup::default());
        }
        if let Some(group) = self.open.back_mut() {
            group.begun.extend(writes.iter().filter_map(begun));
            group.writes.extend(writes);
            group.runs.extend(run);
        }
        self.first_open() + u64::try_from(self.open.len()).unwrap_or_default() - 1
    }

    /// Sets whether each message gets a batch of its own.
    pub fn set_alone(&mut self, alone: bool) {
        self.alone = alone;
    }

    /// The current message is done: closes its group if each message gets a batch of its own.
    pub fn seal(&mut self) {
        if let Some(group) = self.open.back_mut().filter(|_| self.alone) {
            group.sealed = true;
        }
    }

    /// Returns the output if the batch is already committed; otherwise holds it until then.
    pub fn after(&mut self, batch: BatchNumber, output: Output) -> Option<Output> {
        if batch <= self.committed {
            return Some(output);
        }
        let first_open = self.first_open();
        let group = match batch.checked_sub(first_open) {
            None => self.flight.as_mut(),
            Some(place) => usize::try_from(place).ok().and_then(|place| self.open.get_mut(place)),
        };
        match group {
            Some(group) => {
                group.after.push(output);
                None
            }
            None => Some(output),
        }
    }

    /// Whether the batch is durable.
    pub fn durable(&self, batch: BatchNumber) -> bool {
        batch <= self.committed
    }

    /// Whether there is something to write, and no commit in flight that it has to wait for.
    pub fn waits(&self) -> bool {
        self.flight.is_none() && !self.open.is_empty()
    }

    /// The next batch for the store, if none is in flight and there is something to write.
    pub fn take_batch(&mut self) -> Option<Batch> {
        if self.flight.is_some() {
            return None;
        }
        let mut group = self.open.pop_front()?;
        let writes = std::mem::take(&mut group.writes);
        self.flight = Some(group);
        Some(Batch { shard: self.shard, epoch: self.epoch, writes })
    }

    /// The commit in flight succeeded: returns the outputs held for it, in order.
    pub fn commit_done(&mut self) -> Vec<Output> {
        let Some(flight) = self.flight.take() else { return Vec::new() };
        self.committed += 1;
        flight.after
    }

    /// The runs whose writes are in flight.
    pub fn runs_in_flight(&self) -> Vec<RunId> {
        self.flight.iter().flat_map(|flight| &flight.runs).copied().collect()
    }

    /// Whether the run's first log row is in flight.
    pub fn begins(&self, run: RunId) -> bool {
        self.flight.as_ref().is_some_and(|flight| flight.begun.contains(&run))
    }

    /// Takes all outputs held for a commit, in order.
    pub fn take_waiting(&mut self) -> Vec<Output> {
        let groups = self.flight.take().into_iter().chain(self.open.drain(..));
        groups.flat_map(|group| group.after).collect()
    }

    /// Number of the first batch that is not in flight.
    fn first_open(&self) -> BatchNumber {
        self.committed + 1 + u64::from(self.flight.is_some())
    }
}

/// The run whose first log row this write is, if it is one.
fn begun(write: &Write) -> Option<RunId> {
    match write {
        Write::AppendLog(row) if row.sequence == 1 => Some(row.run),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::message::Halt;

    fn pipeline() -> Pipeline {
        Pipeline::new(ShardId::new(3).unwrap(), 7, false)
    }

    fn write(number: u64) -> Write {
        Write::DeleteOutbox { run: RunId::from_slice(&[0; 16]).unwrap(), number }
    }

    fn halted(name: &str) -> Output {
        Output::Halted(Halt::Taken(name.into()))
    }

    fn names(outputs: &[Output]) -> Vec<&str> {
        outputs
            .iter()
            .map(|output| match output {
                Output::Halted(Halt::Taken(name)) => name.as_str(),
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

    #[test]
    fn after_a_refusal_each_message_is_committed_alone() {
        let mut pipeline = Pipeline::new(ShardId::new(3).unwrap(), 7, true);
        let first = pipeline.push(None, vec![write(1)]);
        pipeline.seal();
        let second = pipeline.push(None, vec![write(2)]);
        assert_eq!(pipeline.push(None, vec![write(3)]), second, "one message, one batch");
        pipeline.seal();
        assert!(pipeline.after(second, halted("second")).is_none());
        assert!(pipeline.after(first, halted("first")).is_none());
        assert_eq!(pipeline.take_batch().unwrap().writes, [write(1)]);
        assert_eq!(names(&pipeline.commit_done()), ["first"]);
        assert_eq!(pipeline.take_batch().unwrap().writes, [write(2), write(3)]);
        assert_eq!(names(&pipeline.commit_done()), ["second"]);
    }
}
