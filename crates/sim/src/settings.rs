//! What kind of world a seed makes: its bounds, how much is asked of it, and how often what fails.
//! Bounds are small, so that every path is taken; each seed leaves some kinds of trouble out, so that
//! the others are seen on their own.

use std::{sync::Arc, time::Duration};

use abide_core::limits::Limits;

use crate::{
    rng::Rng,
    schedule::{MILLIS, Micros, SECOND},
};

/// The nature of one world.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bounds of the machines.
    pub limits: Arc<Limits>,
    /// How long clients ask and faults happen.
    pub span: Micros,
    /// How many requests clients make in that time.
    pub operations: u64,
    /// How many faults are planned in that time, besides those of single messages.
    pub planned_faults: u64,
    /// How often single things go wrong.
    pub odds: Odds,
    /// How many nodes there are.
    pub nodes: usize,
    /// How long a node may be silent before others take its shards, if there are others.
    pub lease: Micros,
}

/// How often single things go wrong, in thousandths.
#[derive(Clone, Debug, Default)]
pub struct Odds {
    /// A commit is refused although nothing is wrong with it.
    pub commit_refused: u64,
    /// A commit is not possible now.
    pub commit_unavailable: u64,
    /// Nobody knows what became of a commit.
    pub commit_unknown: u64,
    /// A commit takes long.
    pub commit_slow: u64,
    /// A read fails.
    pub read_fails: u64,
    /// A read takes long.
    pub read_slow: u64,
    /// A message between shards is lost.
    pub link_lost: u64,
    /// A message between shards comes twice.
    pub link_twice: u64,
    /// A message between shards takes long.
    pub link_slow: u64,
    /// A worker forgets the runs that it has in memory.
    pub cache_lost: u64,
    /// A worker never answers a task.
    pub worker_hangs: u64,
    /// A worker answers a task too late.
    pub worker_late: u64,
    /// A worker answers twice.
    pub worker_twice: u64,
    /// A worker says that it could not run the code.
    pub worker_fails: u64,
    /// A client's connection breaks before the answer.
    pub reply_lost: u64,
    /// A request about nodes' rows fails, and a write may have been made.
    pub row_fails: u64,
    /// A request about nodes' rows takes long.
    pub row_slow: u64,
    /// A message between nodes takes long, and all behind it.
    pub peer_slow: u64,
    /// The link breaks that a message between nodes is sent on.
    pub peer_breaks: u64,
}

impl Settings {
    /// Draws the nature of a world.
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
        snapshot_rows: 3,
        page_rows: 2,
        near_window: Duration::from_millis(rng.between(500, 5000)),
        near_timers: 3,
        queued_offers: 3,
        waiting_requests: 6,
        effect_timeout: Duration::from_millis(rng.between(300, 2000)),
        confirmed_retention: Duration::from_secs(600),
        sweep_interval: Duration::from_secs(rng.between(5, 60)),
        events_suggested: 40,
        ..Limits::default()
    };
    if rng.chance(150) {
        // Runs stay in memory, and so do timers and offers.
        limits.cached_runs = 50;
        limits.page_rows = 20;
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
