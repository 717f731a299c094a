//! The workflows of the crash test, which do a little of everything and report at the end what they
//! observed, and an activity that records each of its attempts.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, SystemTime},
};

use abide::prelude::*;
use abide_core::attempt::ActivityToken;
use serde::{Deserialize, Serialize};

/// The queue of the crash test.
pub(crate) const QUEUE: &str = "crash-test";

/// Name of the errand that runs at most once.
pub(crate) const ONCE: &str = "once";

/// Duration of the longest errand, in milliseconds: long enough that kills hit errands in flight.
const LONGEST_ERRAND_MS: u64 = 200;

/// Interval between heartbeats of an errand, and the time after which a silent one is given up.
const BEAT: Duration = Duration::from_millis(20);
const SILENCE: Duration = Duration::from_secs(2);

/// What a journey is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The journey's workflow id.
    pub(crate) id: String,
    /// How long it sleeps, in milliseconds.
    pub(crate) nap_ms: u64,
    /// How many activities run side by side.
    pub(crate) errands: u32,
    /// How many messages will be sent to it.
    pub(crate) messages: usize,
}

/// What a journey observed.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The messages, in order.
    pub(crate) messages: Vec<String>,
    /// The sum of all updates.
    pub(crate) total: u64,
    /// How long its sleep took by the workflow's own clock, in milliseconds.
    pub(crate) slept_ms: u64,
    /// Results of its activities.
    pub(crate) errands: Vec<String>,
    /// Result of its at-most-once activity, unless it was lost with a worker.
    pub(crate) once: Option<String>,
    /// Result of its child.
    pub(crate) child: String,
}

/// Activities, a sleep, a child, messages and updates; completes when it is told to.
#[derive(Default)]
pub(crate) struct Journey {
    total: u64,
}

#[workflow]
impl Journey {
    #[run]
    async fn run(ctx: &Context<Self>, plan: Plan) -> abide::Result<Report> {
        let errands =
            (0..plan.errands).map(|number| errand(ctx, format!("{}/{number}", plan.id)).start());
        let once = errand(ctx, format!("{}/{ONCE}", plan.id)).at_most_once().start();
        let errands = join_all(errands).await.into_iter().collect::<Result<_, _>>()?;
        // A lost attempt is not repeated, as requested.
        let once = once.await.ok();
        let begin = ctx.now();
        ctx.sleep(Duration::from_millis(plan.nap_ms)).await?;
        let slept_ms = ctx.now().saturating_since(begin).as_millis();
        let child = Detour::child(ctx, detour_of(&plan.id), plan.id.clone()).await?;
        let mut messages = Vec::new();
        while messages.len() < plan.messages {
            messages.push(ctx.receive(Self::MESSAGE).await?);
        }
        ctx.receive(Self::ARRIVE).await?;
        Ok(Report {
            messages,
            total: ctx.read(|state| state.total),
            slept_ms: u64::try_from(slept_ms).unwrap_or(u64::MAX),
            errands,
            once,
            child,
        })
    }

    #[signal]
    pub(crate) fn message(text: String);

    #[signal]
    pub(crate) fn arrive();

    #[update]
    pub(crate) fn add(&mut self, amount: u64) -> u64 {
        self.total += amount;
        self.total
    }
}

/// The child workflow of a journey.
#[derive(Default)]
pub(crate) struct Detour;

#[workflow]
impl Detour {
    #[run]
    async fn run(ctx: &Context<Self>, of: String) -> abide::Result<String> {
        ctx.sleep(Duration::from_millis(5)).await?;
        errand(ctx, format!("{of}/detour")).await
    }
}

/// The workflow id of a journey's child.
pub(crate) fn detour_of(journey: &str) -> String {
    format!("{journey}-detour")
}

/// An errand whose attempts must send heartbeats to stay alive.
fn errand<W>(ctx: &Context<W>, about: String) -> abide::context::ActivityCall<String> {
    ctx.activity(Ledger::errand, about).heartbeat_timeout(SILENCE)
}

/// Records every attempt in a file that all workers share.
pub(crate) struct Ledger {
    file: Mutex<File>,
}

/// One attempt of an activity.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Identifies the activity over all attempts.
    pub(crate) execution: String,
    /// The input of the activity.
    pub(crate) errand: String,
    /// How often the engine had handed it out by then.
    pub(crate) start: u32,
    /// When the attempt began, in milliseconds since 1970.
    pub(crate) began_ms: u64,
}

#[activities]
impl Ledger {
    #[activity]
    async fn errand(&self, ctx: ActivityContext, errand: String) -> Result<String, ActivityError> {
        let token = ActivityToken::from_text(&ctx.token()?).map_err(ActivityError::from_source)?;
        let entry = Entry {
            execution: ctx.execution_id().to_string(),
            errand: errand.clone(),
            start: token.start,
            began_ms: now_ms(),
        };
        self.write(&entry).map_err(ActivityError::from_source)?;
        let mut left = Duration::from_millis(fastrand::u64(0..=LONGEST_ERRAND_MS));
        while !left.is_zero() {
            ctx.heartbeat(&()).map_err(ActivityError::from_source)?;
            let beat = left.min(BEAT);
            tokio::time::sleep(beat).await;
            left -= beat;
        }
        Ok(format!("done: {errand}"))
    }
}

impl Ledger {
    /// Opens the ledger in this file.
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file: Mutex::new(file) })
    }

    /// Writes one line per attempt in a single write, so that lines of several workers do not mix.
    fn write(&self, entry: &Entry) -> std::io::Result<()> {
        let line = format!("{}\n", serde_json::to_string(entry)?);
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(line.as_bytes())
    }

    /// Reads all attempts in the file. A killed worker may have left half a line.
    pub(crate) fn read(path: &PathBuf) -> std::io::Result<Vec<Entry>> {
        let text = std::fs::read_to_string(path)?;
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }
}

/// The system's time in milliseconds since 1970, a clock that workers and engine share.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
