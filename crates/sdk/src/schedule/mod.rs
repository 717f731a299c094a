//! Schedules, which start workflows at their times: what a client says of one, and what it is shown.
//! The calls are methods of the client and of its [`ScheduleHandle`](crate::client::ScheduleHandle).

mod definition;
mod shown;
mod times;

pub use self::{
    definition::{Overlap, Schedule},
    shown::{ScheduleDescription, ScheduleRow, ScheduledOutcome, ScheduledRun},
    times::Times,
};
