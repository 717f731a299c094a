//! Seeded random batches over few names, so that puts, deletes and refusals often hit the same row.

use std::time::Duration;

use abide_core::{
    ids::{RunId, ShardId},
    search::{AttributeKind, Value},
    time::Timestamp,
};
use bytes::Bytes;

use crate::{
    Batch, Write,
    conformance::samples::{
        attribute_row, due_row, inbox_row, log_row, outbox_row, run, run_row, shard, snapshot_row,
        task_key, task_row, time, wait_row,
    },
    rows::{
        DueRow, RegistryRow, RunRow, RunStatus, TaskPhase, TaskRow, WaitKind, WaitRow, WorkKind,
    },
};

/// Number of runs. Each belongs to one of [`SHARDS`] shards.
pub(super) const RUNS: u64 = 12;
/// Number of shards that are written to.
pub(super) const SHARDS: u8 = 3;

/// A splitmix64 generator: small, seeded, and identical on every platform.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap_or_default()]
    }

    pub(super) fn time(&mut self) -> Timestamp {
        let late = Timestamp::NEVER;
        let near =
            time(1_800_000_000, 0).saturating_add(Duration::from_millis(self.below(8) * 900));
        self.pick(&[late, near, near, time(-3, 5), time(1_800_100_000, 1)])
    }

    fn bytes(&mut self) -> Bytes {
        Bytes::from_static(self.pick(&[b"" as &[u8], b"\0", b"a", b"a\0", b"\xff"]))
    }

    fn name(&mut self) -> &'static str {
        self.pick(&["", "a", "b", "ü"])
    }

    /// A batch of up to eight writes; one in twelve has a wrong epoch.
    pub(super) fn batch(&mut self, epochs: &[u64]) -> Batch {
        let number = self.below(u64::from(SHARDS));
        let of = shard(u8::try_from(number).unwrap_or_default());
        let epoch = epochs[usize::from(of.number())] + u64::from(self.below(12) == 0);
        let writes = (0..self.below(9)).map(|_| self.write(of, epoch)).collect();
        Batch { shard: of, epoch, writes }
    }

    fn run(&mut self, of: ShardId) -> RunId {
        let shards = u64::from(SHARDS);
        run(self.below(RUNS / shards) * shards + u64::from(of.number()))
    }

    fn write(&mut self, of: ShardId, epoch: u64) -> Write {
        let run = self.run(of);
        match self.below(27) {
            0 => Write::Claim { epoch: epoch + self.below(3), owner: self.name().to_owned() },
            1..=4 => Write::AppendLog(log_row(run, self.below(12))),
            5 => Write::PutSnapshot(snapshot_row(run)),
            6..=8 => Write::PutRun(self.run_row(run)),
            9 => Write::DeleteRun(run),
            10 | 11 => Write::PutTask(self.task_row(run)),
            12 => Write::DeleteTask(self.task_row(run).key),
            13 | 14 => Write::PutDue(self.due_row(run)),
            15 => Write::DeleteDue(self.due_row(run).key()),
            16 | 17 => Write::PutWait(self.wait_row(run)),
            18 => Write::DeleteWait { run, wait: self.bytes() },
            19 => Write::PutOutbox(outbox_row(run, self.below(3))),
            20 => Write::DeleteOutbox { run, number: self.below(3) },
            21 => Write::PutInbox(inbox_row(run, self.below(3), self.time())),
            22 => Write::DeleteInbox { source: run, number: self.below(3) },
            23 => Write::DeleteInboxBefore(self.time()),
            24 | 25 => Write::PutAttribute(attribute_row(run, self.name(), &self.entry())),
            _ => {
                let (name, value) = (self.name().to_owned(), self.entry().into());
                Write::DeleteAttribute { run, name, value }
            }
        }
    }

    /// A keyword of a search attribute.
    fn entry(&mut self) -> Vec<u8> {
        let keyword = Value::Text(self.name().to_owned());
        keyword.to_entry(AttributeKind::Keyword)
    }

    fn run_row(&mut self, run: RunId) -> RunRow {
        let mut row = run_row(run);
        (row.namespace, row.workflow) = (self.name().into(), self.name().into());
        row.ordinal = self.below(3);
        row.status = self.pick(&RunStatus::ALL);
        row.started_at = self.time();
        row.closed_at = (!row.status.is_open()).then(|| self.time());
        row
    }

    fn task_row(&mut self, run: RunId) -> TaskRow {
        let mut row = task_row(task_key(run));
        row.key.queue = self.name().to_owned();
        row.key.kind = self.pick(&[WorkKind::Workflow, WorkKind::Activity]);
        row.key.scheduled = self.below(2);
        row.phase = self.pick(&[TaskPhase::Ready, TaskPhase::Started, TaskPhase::Held]);
        row
    }

    fn due_row(&mut self, run: RunId) -> DueRow {
        let mut row = due_row(run, self.time());
        row.timer = self.bytes();
        row
    }

    fn wait_row(&mut self, run: RunId) -> WaitRow {
        let mut row = wait_row(run, self.pick(&[b"" as &[u8], b"\0", b"a"]));
        (row.kind, row.name) = (self.pick(&WaitKind::ALL), self.name().to_owned());
        row.until = self.time();
        row
    }

    pub(super) fn registry_row(&mut self) -> RegistryRow {
        let (name, version) = (self.name().to_owned(), self.below(5));
        RegistryRow { name, version, value: self.bytes() }
    }
}
