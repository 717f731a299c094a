//! Rows, filters and counts of runs and waits, as clients see them. What only the engine and its stores
//! need of a row stays in the core.

mod count;
mod position;
mod run;
mod status;
mod wait;

pub(crate) use self::wait::decoded;
pub use self::{
    count::{FieldCount, FieldCounts, RunCount, RunCounts, WaitCount, WaitCounts, WaitIntervals},
    position::{ParsePositionError, RunPosition, WaitPosition},
    run::{RunFilter, RunRow},
    status::{RunStatus, WaitEnd, WaitKind},
    wait::{Wait, WaitFilter, WaitKey, WaitRow},
};
