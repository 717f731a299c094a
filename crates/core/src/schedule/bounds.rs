//! Bounds of schedules, each with its reason.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleBounds {
    /// Starts that wait for others to end: they are in every record of the schedule. Further times are
    /// considered when there is room, so none is lost within the catch-up window.
    pub waiting: usize,
    /// Open runs of a schedule that allows all of them. Further ones start when there is room.
    pub running: usize,
    /// Starts of one step, which is one log row.
    pub starts: usize,
    /// Bytes of what a schedule starts: each start has a copy of them.
    pub run_bytes: usize,
    /// Bytes of the starts of one step. One start is always allowed.
    pub start_bytes: usize,
    /// Bytes of the starts of all open runs, because a start is in memory until it is answered.
    pub running_bytes: usize,
    /// Times that one step considers: a shard does nothing else meanwhile.
    pub times: usize,
    /// Steps of the searches for these, about one for each day that is looked at.
    pub search_steps: u64,
    /// Backfills that are not finished.
    pub backfills: usize,
    /// Times of one backfill: they are counted when it is asked for.
    pub backfill_times: usize,
    /// From the first to the last moment of one backfill.
    pub backfill_span: Duration,
    /// Log rows after which the schedule goes on in a new run: its log must stay short to be read.
    pub rows: u64,
    /// After how long a schedule whose time zone this version does not know looks again.
    pub unknown_zone_retry: Duration,
    /// How long a schedule without further times is kept, to be looked at.
    pub kept_after_end: Duration,
}

impl Default for ScheduleBounds {
    fn default() -> Self {
        Self {
            waiting: 100,
            running: 1_000,
            starts: 100,
            run_bytes: 256 << 10,
            start_bytes: 4 << 20,
            running_bytes: 64 << 20,
            times: 1_000,
            search_steps: 1_000_000,
            backfills: 10,
            backfill_times: 1_000,
            backfill_span: Duration::from_secs(10 * 366 * 24 * 3600),
            rows: 500,
            unknown_zone_retry: Duration::from_secs(3600),
            kept_after_end: Duration::from_secs(7 * 24 * 3600),
        }
    }
}
