//! Schedules: when workflows are started by themselves.

mod calendar;
pub mod cron;
mod field;
mod interval;
mod rule;
mod spec;
#[cfg(test)]
mod spec_tests;
mod zone;

pub use self::{
    calendar::Calendar,
    interval::Interval,
    spec::{Search, Spec, Times},
};
