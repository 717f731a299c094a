//! What most workflows and activities need, for a glob import.

pub use abide_sdk::{
    ActivityContext, ActivityError, Context, Deadline, Error, OnCancel, Outcome, RetryPolicy, Saga,
    Window, first_success, join, join_all, select,
    time::{Now as _, days, hours, minutes, months, seconds, weeks, years},
    try_join, try_join_all,
};
#[cfg(feature = "macros")]
pub use abide_sdk::{activities, activity, condition, workflow};
