//! What a client sends and gets. [`Client`](crate::Client) and
//! [`WorkflowHandle`](crate::WorkflowHandle) make these; set options on them, then await them.

pub use abide_sdk::client::{
    ActivityHandle, ActivityPhase, Batch, BatchFailure, BatchInfo, BatchStart, BatchStatus,
    Blocked, BlockedReason, ChangeSchedule, ControlRequest, CreateSchedule, Description, Handled,
    HistoryEvent, HistoryFollower, List, Liveness, NodeInfo, NodeStatus, PendingActivity,
    PendingChild, Query, RefusalKind, RescheduleTimer, Reset, ResumeSource, RunOutcome,
    RunReference, RunRefusal, ScheduleHandle, Signal, Start, StartWithUpdate, StartedWithUpdate,
    TaskFailureCause, TaskTrouble, Untyped, Update, UpdateHandle, UpdateState, WaitsFollower,
};
#[cfg(feature = "grpc")]
pub use abide_sdk::grpc::ClientBuilder;
