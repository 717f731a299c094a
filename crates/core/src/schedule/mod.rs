//! Schedules: they start workflows at their times, by themselves.
//!
//! A schedule is a run of the engine's own kind. It has no code and no tasks: [`crate::run`] steps it
//! in the transition of whatever happens to it, and records what it did. So it is as durable as any
//! run, acts once, and needs no worker.
//!
//! `spec` says when, with `calendar`, `cron`, `interval` and `zone`; `definition` what and under which
//! policy; `state` is what is known and how records change it; `step` is the machine.

mod bounds;
mod calendar;
pub mod cron;
mod definition;
mod field;
mod interval;
mod record;
mod rule;
mod shown;
mod spec;
#[cfg(test)]
mod spec_tests;
mod state;
mod step;
#[cfg(test)]
mod step_tests;
mod zone;

pub(crate) use self::step::{StepContext, step};
pub use self::{
    bounds::ScheduleBounds,
    calendar::Calendar,
    definition::{Overlap, RESERVED, SCHEDULE_TYPE, Schedule, id_of, key_of},
    interval::Interval,
    record::{EndRun, ScheduleChange, ScheduleChanged, ScheduleStepped, ScheduledRunEnded},
    shown::{ScheduleListing, length},
    spec::{Search, Spec, Times},
    state::{Backfill, PlannedStart, ScheduleState, ScheduledOutcome, ScheduledRun},
};
