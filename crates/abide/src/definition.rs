//! Definitions as types, for your own generic code. `#[workflow]`, `#[activity]` and `#[activities]` make
//! them; other code seldom names them.

pub use abide_sdk::{
    ActivityDef, QueryDef, ReturnedError, SignalDef, UpdateDef,
    activity::{Activities, Activity},
    approval::Approving,
    arguments::ArgumentList,
    future::LocalBoxFuture,
};
