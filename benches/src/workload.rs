//! What is committed: the rows and bytes of the transitions of small workflows, written by hand with
//! the sizes that their events have. Only this file knows what a transition looks like, so batches of
//! the engine itself can take its place.
//!
//! - [`Hello`]: one workflow with one activity, four transitions per run. Its only timer is the
//!   activity's timeout, ten seconds ahead and removed by the next transition.
//! - [`Sleep`]: the same with a sleep before the activity, at a random time within 30 days, as a due
//!   entry and a wait; the sleep is cancelled by the next transition. Six transitions per run.
//! - [`sleepers`]: runs that sleep, to fill the tables with.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use abide_core::{
    ids::{RunId, ShardId, WorkflowId, WorkflowKey},
    time::Timestamp,
};
use abide_store::{
    Batch, Write,
    rows::{
        DueRow, LogRow, RunRow, RunStatus, TaskKey, TaskKind, TaskPhase, TaskRow, WaitKind, WaitRow,
    },
};
use bytes::Bytes;

use crate::random::Random;

/// Makes one batch after the other.
pub trait Client {
    /// The next transition.
    fn next_batch(&mut self) -> Batch;
}

/// How far ahead sleeps end, at most.
pub const SLEEP_SECONDS_MAX: u64 = 30 * 24 * 3600;

/// What workflow ids look like. It matters to the one index that must find a run by them.
#[derive(Clone, Copy, Debug)]
pub enum Ids {
    /// Numbered as they come, as orders and invoices are.
    Numbered,
    /// In no order at all, as UUIDs of version 4 are.
    Random,
}

impl Ids {
    fn next(self, random: &mut Random) -> WorkflowId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        match self {
            Self::Numbered => format!("hello-{:016}", NEXT.fetch_add(1, Relaxed)).into(),
            Self::Random => format!("hello-{:016x}", random.bits()).into(),
        }
    }
}

/// A run on its way.
struct Run {
    run: RunId,
    shard: ShardId,
    workflow: WorkflowId,
    sequence: u64,
    started_at: Timestamp,
    writes: Vec<Write>,
}

impl Run {
    fn new(started_at: Timestamp, ids: Ids, random: &mut Random) -> Self {
        let entropy = u128::from(random.bits()) << 64 | u128::from(random.bits());
        let run = RunId::from_parts(started_at, entropy);
        let workflow = ids.next(random);
        let key = WorkflowKey { namespace: "default".into(), workflow: workflow.clone() };
        let shard = key.slot().shard();
        Self { run, shard, workflow, sequence: 0, started_at, writes: Vec::new() }
    }

    /// Ends the transition.
    fn take_batch(&mut self) -> Batch {
        Batch { shard: self.shard, epoch: 0, writes: std::mem::take(&mut self.writes) }
    }

    fn append(&mut self, events: usize, notes: usize) {
        self.sequence += 1;
        self.writes.push(Write::AppendLog(LogRow {
            run: self.run,
            sequence: self.sequence,
            first_event: self.sequence * 3 - 2,
            events: Bytes::from(vec![b'e'; events]),
            notes: Bytes::from(vec![b'n'; notes]),
        }));
    }

    fn put_run(&mut self, status: RunStatus, closed_at: Option<Timestamp>) {
        self.writes.push(Write::PutRun(RunRow {
            run: self.run,
            namespace: "default".into(),
            workflow: self.workflow.clone(),
            ordinal: 1,
            workflow_type: "Hello".to_owned(),
            status,
            start_key: Some(format!("key-{}", self.workflow)),
            started_at: self.started_at,
            closed_at,
            details: Bytes::from_static(b"memo"),
        }));
    }

    fn task(&self, kind: TaskKind) -> TaskKey {
        let scheduled = if kind == TaskKind::Activity { 5 } else { 0 };
        let queue = "default".to_owned();
        TaskKey { namespace: "default".into(), queue, kind, run: self.run, scheduled }
    }

    fn put_task(&mut self, kind: TaskKind, phase: TaskPhase) {
        let (key, workflow) = (self.task(kind), self.workflow.clone());
        self.writes.push(Write::PutTask(TaskRow { key, workflow, phase }));
    }

    fn delete_task(&mut self, kind: TaskKind) {
        self.writes.push(Write::DeleteTask(self.task(kind)));
    }

    fn due(&self, due: Timestamp) -> DueRow {
        let (run, timer) = (self.run, Bytes::from_static(b"activity/5"));
        DueRow { due, run, timer, workflow: self.workflow.clone(), namespace: "default".into() }
    }

    fn wait(&self, until: Timestamp) -> WaitRow {
        WaitRow {
            run: self.run,
            wait: Bytes::from_static(b"timer/1"),
            namespace: "default".into(),
            workflow: self.workflow.clone(),
            kind: WaitKind::Timer,
            name: "1".to_owned(),
            since: self.started_at,
            until,
            details: Bytes::new(),
        }
    }

    /// RunStarted and TaskScheduled.
    fn start(&mut self) {
        self.append(450, 0);
        self.put_run(RunStatus::Running, None);
        self.put_task(TaskKind::Workflow, TaskPhase::Ready);
    }

    /// TaskStarted, TaskCompleted, ActivityScheduled; the attempt has started already.
    fn schedule_activity(&mut self, timeout_at: Timestamp) {
        self.append(420, 80);
        self.delete_task(TaskKind::Workflow);
        self.put_task(TaskKind::Activity, TaskPhase::Started);
        self.writes.push(Write::PutDue(self.due(timeout_at)));
    }

    /// ActivityStarted, ActivityCompleted, TaskScheduled.
    fn complete_activity(&mut self, timeout_at: Timestamp) {
        self.append(300, 0);
        self.delete_task(TaskKind::Activity);
        self.writes.push(Write::DeleteDue(self.due(timeout_at).key()));
        self.put_task(TaskKind::Workflow, TaskPhase::Ready);
    }

    /// TaskStarted, TaskCompleted, RunCompleted.
    fn close(&mut self, now: Timestamp) {
        self.append(250, 0);
        self.delete_task(TaskKind::Workflow);
        self.put_run(RunStatus::Completed, Some(now));
    }

    /// TaskStarted, TaskCompleted, TimerStarted.
    fn open_sleep(&mut self, until: Timestamp) {
        self.append(300, 0);
        self.delete_task(TaskKind::Workflow);
        self.writes.push(Write::PutDue(self.due(until)));
        self.writes.push(Write::PutWait(self.wait(until)));
    }

    /// A signal ends the sleep: SignalReceived, TimerCancelled, TaskScheduled.
    fn cancel_sleep(&mut self, until: Timestamp) {
        self.append(280, 0);
        self.writes.push(Write::DeleteDue(self.due(until).key()));
        let wait = self.wait(until).wait;
        self.writes.push(Write::DeleteWait { run: self.run, wait });
        self.put_task(TaskKind::Workflow, TaskPhase::Ready);
    }
}

/// Runs a workflow with one activity, again and again.
pub struct Hello {
    ids: Ids,
    random: Random,
    run: Option<Run>,
    timeout_at: Timestamp,
}

impl Hello {
    /// A client with its own stream of run ids.
    pub fn new(seed: u64) -> Self {
        Self { ids: Ids::Numbered, random: Random(seed), run: None, timeout_at: Timestamp::EPOCH }
    }

    /// The same with workflow ids in no order.
    pub fn with_random_ids(seed: u64) -> Self {
        Self { ids: Ids::Random, ..Self::new(seed) }
    }
}

impl Client for Hello {
    fn next_batch(&mut self) -> Batch {
        let now = now();
        let (ids, random) = (self.ids, &mut self.random);
        let run = self.run.get_or_insert_with(|| Run::new(now, ids, random));
        match run.sequence {
            0 => run.start(),
            1 => {
                self.timeout_at = now.saturating_add(Duration::from_secs(10));
                run.schedule_activity(self.timeout_at);
            }
            2 => run.complete_activity(self.timeout_at),
            _ => run.close(now),
        }
        let batch = run.take_batch();
        self.run.take_if(|run| run.sequence == 4);
        batch
    }
}

/// Runs a workflow with a sleep and an activity, again and again.
pub struct Sleep {
    random: Random,
    run: Option<Run>,
    timer_at: Timestamp,
}

impl Sleep {
    /// A client with its own stream of run ids.
    pub fn new(seed: u64) -> Self {
        Self { random: Random(seed), run: None, timer_at: Timestamp::EPOCH }
    }
}

impl Client for Sleep {
    fn next_batch(&mut self) -> Batch {
        let now = now();
        let random = &mut self.random;
        let run = self.run.get_or_insert_with(|| Run::new(now, Ids::Numbered, random));
        match run.sequence {
            0 => run.start(),
            1 => {
                self.timer_at = within_a_month(now, &mut self.random);
                run.open_sleep(self.timer_at);
            }
            2 => run.cancel_sleep(self.timer_at),
            3 => {
                self.timer_at = now.saturating_add(Duration::from_secs(10));
                run.schedule_activity(self.timer_at);
            }
            4 => run.complete_activity(self.timer_at),
            _ => run.close(now),
        }
        let batch = run.take_batch();
        self.run.take_if(|run| run.sequence == 6);
        batch
    }
}

/// Batches that leave `count` runs asleep, each with its log, run, due entry and wait.
pub fn sleepers(count: u64, seed: u64) -> impl Iterator<Item = Batch> {
    let mut random = Random(seed);
    (0..count).flat_map(move |_| {
        let now = now();
        let mut run = Run::new(now, Ids::Numbered, &mut random);
        let until = within_a_month(now, &mut random);
        run.start();
        let start = run.take_batch();
        run.open_sleep(until);
        [start, run.take_batch()]
    })
}

fn within_a_month(now: Timestamp, random: &mut Random) -> Timestamp {
    now.saturating_add(Duration::from_millis(random.below(SLEEP_SECONDS_MAX * 1000)))
}

fn now() -> Timestamp {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp::EPOCH.saturating_add(since_epoch.unwrap_or_default())
}
