//! What a condition can be about: what every run has, what it waits for, and registered attributes.

use super::{AttributeKind, Value};
use crate::list::{RunRow, RunStatus, WaitRow};

/// A field of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    System(SystemField),
    /// A search attribute, with the type that it is registered with.
    Attribute(String, AttributeKind),
}

/// A field that is there without being registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SystemField {
    WorkflowId,
    RunId,
    WorkflowType,
    ExecutionStatus,
    StartTime,
    CloseTime,
    TaskQueue,
    ParentWorkflowId,
    ParentRunId,
    /// The code of the run does not fit its history.
    Blocked,
    WaitKind,
    WaitName,
    /// The end of a wait; waits without an end have none.
    WaitUntil,
}

/// What the values of a field are, and so how they are written and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    Keyword,
    KeywordList,
    /// Words of a text.
    Words,
    Int,
    Double,
    Bool,
    Time,
    Status,
    WaitKind,
    Run,
}

impl SystemField {
    pub const ALL: [Self; 13] = [
        Self::WorkflowId,
        Self::RunId,
        Self::WorkflowType,
        Self::ExecutionStatus,
        Self::StartTime,
        Self::CloseTime,
        Self::TaskQueue,
        Self::ParentWorkflowId,
        Self::ParentRunId,
        Self::Blocked,
        Self::WaitKind,
        Self::WaitName,
        Self::WaitUntil,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::WorkflowId => "WorkflowId",
            Self::RunId => "RunId",
            Self::WorkflowType => "WorkflowType",
            Self::ExecutionStatus => "ExecutionStatus",
            Self::StartTime => "StartTime",
            Self::CloseTime => "CloseTime",
            Self::TaskQueue => "TaskQueue",
            Self::ParentWorkflowId => "ParentWorkflowId",
            Self::ParentRunId => "ParentRunId",
            Self::Blocked => "Blocked",
            Self::WaitKind => "WaitKind",
            Self::WaitName => "WaitName",
            Self::WaitUntil => "WaitUntil",
        }
    }

    /// The field of this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name().eq_ignore_ascii_case(name))
    }

    /// It is about one of the things that the run waits for.
    pub const fn of_wait(self) -> bool {
        matches!(self, Self::WaitKind | Self::WaitName | Self::WaitUntil)
    }

    const fn field_type(self) -> FieldType {
        match self {
            Self::WorkflowId
            | Self::WorkflowType
            | Self::TaskQueue
            | Self::ParentWorkflowId
            | Self::WaitName => FieldType::Keyword,
            Self::RunId | Self::ParentRunId => FieldType::Run,
            Self::ExecutionStatus => FieldType::Status,
            Self::StartTime | Self::CloseTime | Self::WaitUntil => FieldType::Time,
            Self::Blocked => FieldType::Bool,
            Self::WaitKind => FieldType::WaitKind,
        }
    }

    /// What the run has in this field; nothing if it is about a wait.
    pub fn of_run(self, row: &RunRow) -> Option<Value> {
        Some(match self {
            Self::WorkflowId => Value::Text(row.workflow.to_string()),
            Self::RunId => Value::Run(row.run),
            Self::WorkflowType => Value::Text(row.workflow_type.clone()),
            Self::ExecutionStatus => Value::Status(row.status),
            Self::StartTime => Value::Time(row.started_at),
            Self::CloseTime => Value::Time(row.closed_at?),
            Self::TaskQueue => Value::Text(row.queue.clone()),
            Self::ParentWorkflowId => Value::Text(row.parent.as_ref()?.workflow.to_string()),
            Self::ParentRunId => Value::Run(row.parent.as_ref()?.run),
            Self::Blocked => Value::Bool(row.status == RunStatus::ReplayBlocked),
            Self::WaitKind | Self::WaitName | Self::WaitUntil => return None,
        })
    }

    /// What the wait has in this field; nothing if it is about the run.
    pub fn of_waiting(self, row: &WaitRow) -> Option<Value> {
        match self {
            Self::WaitKind => Some(Value::Wait(row.kind)),
            Self::WaitName => Some(Value::Text(row.name.clone())),
            Self::WaitUntil => (!row.until.is_never()).then_some(Value::Time(row.until)),
            Self::WorkflowId
            | Self::RunId
            | Self::WorkflowType
            | Self::ExecutionStatus
            | Self::StartTime
            | Self::CloseTime
            | Self::TaskQueue
            | Self::ParentWorkflowId
            | Self::ParentRunId
            | Self::Blocked => None,
        }
    }
}

impl Field {
    pub fn name(&self) -> &str {
        match self {
            Self::System(field) => field.name(),
            Self::Attribute(name, _) => name,
        }
    }

    pub const fn field_type(&self) -> FieldType {
        match self {
            Self::System(field) => field.field_type(),
            Self::Attribute(_, kind) => match kind {
                AttributeKind::Keyword => FieldType::Keyword,
                AttributeKind::KeywordList => FieldType::KeywordList,
                AttributeKind::Text => FieldType::Words,
                AttributeKind::Int => FieldType::Int,
                AttributeKind::Double => FieldType::Double,
                AttributeKind::Bool => FieldType::Bool,
                AttributeKind::Time => FieldType::Time,
            },
        }
    }

    /// The field is about one of the things that the run waits for.
    pub const fn of_wait(&self) -> bool {
        matches!(self, Self::System(field) if field.of_wait())
    }

    /// Runs can be counted by their value of this field: few runs share a time, an id or a text.
    pub const fn groups(&self) -> bool {
        match self {
            Self::System(field) => matches!(
                field,
                SystemField::ExecutionStatus | SystemField::WorkflowType | SystemField::TaskQueue
            ),
            Self::Attribute(_, kind) => match kind {
                AttributeKind::Keyword
                | AttributeKind::KeywordList
                | AttributeKind::Int
                | AttributeKind::Bool => true,
                AttributeKind::Text | AttributeKind::Double | AttributeKind::Time => false,
            },
        }
    }
}

impl FieldType {
    /// Values can be compared with `<`, `<=`, `>`, `>=` and BETWEEN.
    pub(super) const fn ordered(self) -> bool {
        matches!(self, Self::Keyword | Self::Int | Self::Double | Self::Time)
    }

    /// Values have prefixes.
    pub(super) const fn prefixed(self) -> bool {
        matches!(self, Self::Keyword | Self::KeywordList)
    }

    /// The operators that such fields have, in words.
    pub(super) fn operators(self) -> &'static str {
        match (self.ordered(), self.prefixed()) {
            (true, true) => "=, !=, <, <=, >, >=, IN, BETWEEN, STARTS_WITH and IS NULL",
            (true, false) => "=, !=, <, <=, >, >=, IN, BETWEEN and IS NULL",
            (false, true) => "=, !=, IN, STARTS_WITH and IS NULL",
            (false, false) => "=, !=, IN and IS NULL",
        }
    }
}
