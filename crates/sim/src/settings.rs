//! What kind of world a seed makes: its limits, its load, and how often things fail. Limits are
//! small, so that every path is taken; each seed omits some kinds of faults, so that the others are
//! seen alone.

use std::{sync::Arc, time::Duration};

use abide_core::{limits::Limits, schedule::ScheduleBounds};

use crate::{
    rng::Rng,
    schedule::{MILLIS, Micros, SECOND},
};

#[derive(Clone, Debug)]
pub struct Settings {
    /// Limits of the machines.
    pub limits: Arc<Limits>,
    /// How long clients send requests and faults happen.
    pub span: Micros,
    /// Number of requests that clients make in that time.
    pub operations: u64,
    /// Number of faults planned in that time, besides those of single messages.
    pub planned_faults: u64,
    pub odds: Odds,
    pub nodes: usize,
    /// How long a node may be silent before others take its shards, if there are others.
    pub lease: Micros,
}

/// How often single operations fail, in thousandths.
#[derive(Clone, Debug, Default)]
pub struct Odds {
    /// A valid commit is refused.
    pub commit_refused: u64,
    /// A commit fails as unavailable.
    pub commit_unavailable: u64,
    /// The outcome of a commit is unknown.
    pub commit_unknown: u64,
    /// A commit is slow.
    pub commit_slow: u64,
    pub read_fails: u64,
    /// A read is slow.
    pub read_slow: u64,
    /// A message between shards is lost.
    pub link_lost: u64,
    /// A message between shards arrives twice.
    pub link_twice: u64,
    /// A message between shards is slow.
    pub link_slow: u64,
    /// A worker loses its cached runs.
    pub cache_lost: u64,
    /// A worker never replies to a task.
    pub worker_hangs: u64,
    /// A worker replies to a task too late.
    pub worker_late: u64,
    /// A worker replies twice.
    pub worker_twice: u64,
    /// A worker reports that it could not run the code.
    pub worker_fails: u64,
    /// A client's connection breaks before the reply.
    pub reply_lost: u64,
    /// A request about nodes' rows fails, although a write may have been made.
    pub row_fails: u64,
    /// A request about nodes' rows is slow.
    pub row_slow: u64,
    /// A message between nodes is slow, and so are all behind it.
    pub peer_slow: u64,
    /// The link of a message between nodes breaks.
    pub peer_breaks: u64,
}

impl Settings {
    pub fn draw(rng: &mut Rng) -> Self {
        let span = rng.between(8, 25) * SECOND;
        Self {
            limits: Arc::new(limits(rng)),
            span,
            operations: rng.between(70, 150),
            planned_faults: rng.between(2, 9),
            odds: Odds::draw(rng),
            nodes: 1 + rng.weighted(&[55, 20, 15, 10]),
            lease: rng.between(1500, 3000) * MILLIS,
        }
    }
}

impl Odds {
    fn draw(rng: &mut Rng) -> Self {
        let mut some = |most: u64| if rng.chance(600) { rng.between(1, most) } else { 0 };
        Self {
            commit_refused: some(8),
            commit_unavailable: some(12),
            commit_unknown: some(15),
            commit_slow: some(100),
            read_fails: some(15),
            read_slow: some(100),
            link_lost: some(80),
            link_twice: some(80),
            link_slow: some(150),
            cache_lost: some(100),
            worker_hangs: some(30),
            worker_late: some(40),
            worker_twice: some(60),
            worker_fails: some(40),
            reply_lost: some(60),
            row_fails: some(60),
            row_slow: some(60),
            peer_slow: some(60),
            peer_breaks: some(8),
        }
    }
}

fn limits(rng: &mut Rng) -> Limits {
    let mut limits = Limits {
        buffered_inputs: 4,
        task_timeout: Duration::from_secs(3),
        heartbeat_write_interval: Duration::from_millis(200),
        session_grace: Duration::from_millis(rng.between(200, 1500)),
        cached_runs: 2,
        // A few inputs, and about four runs.
        buffered_bytes: 2_500,
        cached_bytes: 10_000,
        snapshot_rows: 3,
        page_rows: 2,
        // Some pages end by their rows, others by their bytes.
        log_page_bytes: 300,
        near_window: Duration::from_millis(rng.between(500, 5000)),
        near_timers: 3,
        queued_offers: 3,
        // Fewer than the credits of a worker.
        matches_in_flight: 2,
        waiting_requests: 6,
        effect_timeout: Duration::from_millis(rng.between(300, 2000)),
        confirmed_retention: Duration::from_secs(600),
        sweep_interval: Duration::from_secs(rng.between(5, 60)),
        events_suggested: 40,
        schedules: ScheduleBounds {
            waiting: 2,
            running: 3,
            starts: 2,
            times: 3,
            backfills: 2,
            rows: 4,
            kept_after_end: Duration::from_secs(2),
            ..ScheduleBounds::default()
        },
        ..Limits::default()
    };
    if rng.chance(150) {
        // Runs, timers and offers stay in memory.
        limits.cached_runs = 50;
        limits.cached_bytes = 1 << 20;
        limits.buffered_bytes = 1 << 20;
        limits.page_rows = 20;
        limits.log_page_bytes = 3_000;
        limits.near_timers = 100;
        limits.queued_offers = 50;
        limits.buffered_inputs = 50;
    }
    if rng.chance(100) {
        limits.pending_timers = 3;
        limits.pending_activities = 2;
        limits.pending_children = 2;
    }
    if rng.chance(200) {
        limits.pending_updates = 2;
    }
    if rng.chance(100) {
        limits.events = 60;
        limits.events_reserve = 60;
    }
    limits
}

/// How long something takes: mostly `usual`, with a long tail if it is `slow`.
pub fn delay(rng: &mut Rng, usual: Micros, slow: bool) -> Micros {
    let usual = rng.between(usual / 4, usual);
    if slow { usual + rng.between(50 * MILLIS, 3 * SECOND) } else { usual }
}
