//! The committed batches: recorded transitions of small workflows, repeated with other ids and
//! times.
//!
//! - [`Repeat`]: a client that runs one workflow after the other. A hello has one activity and four
//!   transitions; its only timer is the activity's timeout, ten seconds ahead and deleted by the
//!   next transition. A sleeper first sleeps until a random time within 30 days, which is a due
//!   entry and a wait, and a signal ends the sleep: six transitions.
//! - [`sleepers`]: sleeping runs, to fill the tables.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use abide_core::{
    ids::{RunId, ShardId, WorkflowId, WorkflowKey},
    run::TimerKey,
    time::Timestamp,
};
use abide_store::{Batch, Write};

use crate::{
    random::Random,
    recording::{self, BEGIN, Recording},
};

/// Upper bound for the length of sleeps.
pub const SLEEP_SECONDS_MAX: u64 = 30 * 24 * 3600;

#[derive(Clone, Copy, Debug)]
pub enum Workload {
    Hello,
    /// One activity, with workflow ids in random order.
    HelloRandomIds,
    /// A sleep and one activity.
    Sleep,
}

impl Workload {
    /// A client with its own stream of run ids.
    pub fn client(self, seed: u64) -> Repeat {
        static HELLO: LazyLock<Arc<Recording>> = LazyLock::new(|| Arc::new(recording::hello()));
        static SLEEP: LazyLock<Arc<Recording>> = LazyLock::new(|| Arc::new(recording::sleep()));
        let (recording, ids) = match self {
            Self::Hello => (&HELLO, Ids::Numbered),
            Self::HelloRandomIds => (&HELLO, Ids::Random),
            Self::Sleep => (&SLEEP, Ids::Numbered),
        };
        Repeat { recording: Arc::clone(recording), ids, random: Random(seed), run: None }
    }
}

/// Clients with seeds that no earlier crowd has used.
pub fn crowd(clients: usize, workload: Workload) -> Vec<Repeat> {
    static SEED: AtomicU64 = AtomicU64::new(1 << 32);
    (0..clients).map(|_| workload.client(SEED.fetch_add(1 << 20, Relaxed))).collect()
}

/// Order of workflow ids. It matters for the index that finds a run by workflow id.
#[derive(Clone, Copy, Debug)]
enum Ids {
    /// Ascending, like order or invoice numbers.
    Numbered,
    /// Random, like UUIDs of version 4.
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

/// Runs one recorded workflow after the other.
pub struct Repeat {
    recording: Arc<Recording>,
    ids: Ids,
    random: Random,
    run: Option<Run>,
}

impl Repeat {
    pub fn next_batch(&mut self) -> Batch {
        let (ids, random) = (self.ids, &mut self.random);
        let run = self.run.get_or_insert_with(|| Run::new(ids, random));
        let batch = run.repeat(&self.recording);
        let length = self.recording.len();
        self.run.take_if(|run| run.next == length);
        batch
    }
}

/// Batches that leave `count` runs asleep, each with its log, run, due entry and wait.
pub fn sleepers(count: u64, seed: u64) -> impl Iterator<Item = Batch> {
    let recording = recording::sleep();
    let mut random = Random(seed);
    (0..count).flat_map(move |_| {
        let mut run = Run::new(Ids::Numbered, &mut random);
        [run.repeat(&recording), run.repeat(&recording)]
    })
}

struct Run {
    run: RunId,
    shard: ShardId,
    workflow: WorkflowId,
    started_at: Timestamp,
    sleeps_until: Timestamp,
    next: usize,
}

impl Run {
    fn new(ids: Ids, random: &mut Random) -> Self {
        let started_at = now();
        let entropy = u128::from(random.bits()) << 64 | u128::from(random.bits());
        let workflow = ids.next(random);
        let key = WorkflowKey { namespace: "default".into(), workflow: workflow.clone() };
        let sleep = Duration::from_millis(random.below(SLEEP_SECONDS_MAX * 1000));
        Self {
            run: RunId::from_parts(started_at, entropy),
            shard: key.slot().shard(),
            workflow,
            started_at,
            sleeps_until: started_at.saturating_add(sleep),
            next: 0,
        }
    }

    /// The next transition of the recording, adapted to this run.
    fn repeat(&mut self, recording: &Recording) -> Batch {
        let writes = recording[self.next].iter().map(|write| self.rewrite(write.clone())).collect();
        self.next += 1;
        Batch { shard: self.shard, epoch: 0, writes }
    }

    fn rewrite(&self, mut write: Write) -> Write {
        match &mut write {
            Write::AppendLog(row) => row.run = self.run,
            Write::PutRun(row) => {
                row.run = self.run;
                row.workflow = self.workflow.clone();
                row.start_key = Some(format!("key-{}", self.workflow));
                row.started_at = self.started_at;
                row.closed_at = row.closed_at.map(|_| now());
            }
            Write::PutTask(row) => {
                row.key.run = self.run;
                row.workflow = self.workflow.clone();
            }
            Write::DeleteTask(key) => key.run = self.run,
            Write::PutDue(row) => {
                row.run = self.run;
                row.workflow = self.workflow.clone();
                row.due = self.due(row.due, &row.timer);
            }
            Write::DeleteDue(key) => {
                key.run = self.run;
                key.due = self.due(key.due, &key.timer);
            }
            Write::PutWait(row) => {
                row.run = self.run;
                row.workflow = self.workflow.clone();
                row.since = self.started_at;
                row.until = self.sleeps_until;
            }
            Write::DeleteWait { run, .. } => *run = self.run,
            _ => {}
        }
        write
    }

    /// Sleeps end at a random time within a month; timeouts are as far ahead as in the recording.
    fn due(&self, recorded: Timestamp, timer: &[u8]) -> Timestamp {
        match TimerKey::from_bytes(timer) {
            Some(TimerKey::Timer(_)) => self.sleeps_until,
            _ => self.started_at.saturating_add(recorded.saturating_since(BEGIN)),
        }
    }
}

fn now() -> Timestamp {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp::EPOCH.saturating_add(since_epoch.unwrap_or_default())
}
