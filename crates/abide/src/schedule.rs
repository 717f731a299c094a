//! Schedules, which start workflows at their times. [`Client`](crate::Client) creates, finds and lists
//! them.

pub use abide_sdk::schedule::{
    Overlap, Schedule, ScheduleDescription, ScheduleRow, ScheduledOutcome, ScheduledRun, Times,
};
