//! What a client sends and gets. [`Client`](crate::Client) and
//! [`WorkflowHandle`](crate::WorkflowHandle) make these; set options on them, then await them.

pub use abide_sdk::client::{
    ActivityHandle, Blocked, BlockedReason, CallError, CloseStatus, ControlRequest, Description,
    Exceeded, Handled, HistoryEvent, HistoryFollower, InvalidField, List, Liveness, NodeInfo,
    NodeStatus, Query, RescheduleTimer, ResumeSource, RunOutcome, RunReference, RunRefusal,
    ShownActivity, ShownChild, ShownPhase, Signal, Start, StartWithUpdate, StartedWithUpdate,
    TaskFailureCause, TaskTrouble, Untyped, Update, UpdateHandle, UpdateState, WaitsFollower,
};
#[cfg(feature = "grpc")]
pub use abide_sdk::grpc::ClientBuilder;
