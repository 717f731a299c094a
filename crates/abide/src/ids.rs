//! Names of workflows, runs and what belongs to them. Text becomes a name by `into()`.

pub use abide_sdk::ids::{
    ActivityId, BuildId, EventNumber, ExecutionId, Key, NamespaceId, RunId, TimerId, UpdateId,
    WorkflowId, WorkflowKey,
};
