//! What lists and counts of runs and waits take and return.

pub use abide_sdk::{
    list::{RunFilter, RunRow, RunStatus, WaitEnd, WaitFilter, WaitKind, WaitPosition, WaitRow},
    tally::{Tallied, Tally, TallyGroup, WaitTally},
};
