//! What a client sends and gets. [`Client`](crate::Client) and
//! [`WorkflowHandle`](crate::WorkflowHandle) make these; set options on them, then await them.

pub use abide_sdk::client::{
    ActivityHandle, Blocked, Close, Control, Description, Handled, HistoryFollower, InvalidField,
    List, Liveness, NodeListing, NodeStanding, Query, RescheduleTimer, RunRefusal, ShownWait,
    Signal, Start, StartWithUpdate, StartedWithUpdate, Untyped, Update, UpdateHandle, UpdateState,
    WaitKey, WaitsFollower,
};
