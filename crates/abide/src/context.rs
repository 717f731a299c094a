//! What the methods of a [`Context`](crate::Context) return: futures with options, and handles.

pub use abide_sdk::activity::Cancelled;
pub use abide_sdk::context::{
    ActivityCall, Any, AnySignal, CancelRequest, ChildCall, ChildHandle, ChildResult, ChildStart,
    ExternalCall, ExternalWorkflow, JoinHandle, LocalActivityCall, Pending, Random, Receive,
    Scoped, Shielded, Sleep, Timeout, Timer, WaitUntil,
};
