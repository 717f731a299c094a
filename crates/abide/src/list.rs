//! What lists and counts of runs and waits take and return.

pub use abide_sdk::list::{
    FieldCount, FieldCounts, ParsePositionError, RunCount, RunCounts, RunFilter, RunPosition,
    RunRow, RunStatus, Wait, WaitCount, WaitCounts, WaitEnd, WaitFilter, WaitIntervals, WaitKey,
    WaitKind, WaitPosition, WaitRow,
};
