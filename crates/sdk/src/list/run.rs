//! Runs in lists, and which of them to list.

use abide_core::{
    codec::{self, RunDetails},
    ids::{NamespaceId, RunId, WorkflowId},
    list,
    search::Order,
};

use super::{RunPosition, RunStatus};
use crate::{
    Timestamp,
    payload::{PayloadError, PayloadValue},
    search::SearchAttribute,
};

/// A run in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunRow {
    /// The id of its workflow.
    pub workflow: WorkflowId,
    /// The id of the run.
    pub run: RunId,
    /// The type name of its workflow.
    pub workflow_type: String,
    /// Whether it is open, and if not, how it ended.
    pub status: RunStatus,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended; none while it is open.
    pub closed_at: Option<Timestamp>,
    /// The queue whose workers run it.
    pub queue: String,
    /// Workflow and run that started it as a child.
    pub parent: Option<(WorkflowId, RunId)>,
    position: RunPosition,
    details: RunDetails,
}

impl RunRow {
    pub(crate) fn of(row: list::RunRow, order: Order) -> Self {
        let (at, run) = order.position(&row);
        Self {
            workflow: row.workflow,
            run: row.run,
            workflow_type: row.workflow_type,
            status: row.status.into(),
            started_at: row.started_at,
            closed_at: row.closed_at,
            queue: row.queue,
            parent: row.parent.map(|parent| (parent.workflow, parent.run)),
            position: RunPosition { at, run },
            // A row whose details are damaged is still worth showing.
            details: codec::decode_run_details(row.details).unwrap_or_default(),
        }
    }

    /// A search attribute of the run, if it is set.
    pub fn search_attribute<T: PayloadValue>(
        &self,
        attribute: SearchAttribute<T>,
    ) -> Option<Result<T, PayloadError>> {
        attribute.of(&self.details.search_attributes)
    }

    /// The names of all search attributes that the run has.
    pub fn search_attribute_names(&self) -> impl Iterator<Item = &str> {
        self.details.search_attributes.keys().map(String::as_str)
    }

    /// A named value of the run's memo, as its start or its code has set it.
    pub fn memo<T: PayloadValue>(&self, name: &str) -> Option<Result<T, PayloadError>> {
        super::decoded(&self.details.memo, name)
    }

    /// The names of all values that the run's memo has.
    pub fn memo_names(&self) -> impl Iterator<Item = &str> {
        self.details.memo.keys().map(String::as_str)
    }

    /// The row's position in lists: a page that begins [`after`](RunFilter::after) it goes on from
    /// here.
    pub const fn position(&self) -> RunPosition {
        self.position
    }
}

/// Which runs to list or count. A new filter matches all runs of the client's namespace; each method
/// narrows it: `RunFilter::new().workflow_type("Order").status(RunStatus::Running)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a filter does nothing until it is passed to a client"]
pub struct RunFilter(list::RunFilter);

impl RunFilter {
    /// A filter that matches all runs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only runs of this workflow id.
    pub fn workflow(mut self, workflow: impl Into<WorkflowId>) -> Self {
        self.0.workflow = Some(workflow.into());
        self
    }

    /// Only runs of workflows of this type.
    pub fn workflow_type(mut self, name: impl Into<String>) -> Self {
        self.0.workflow_type = Some(name.into());
        self
    }

    /// Only runs of this status. Call it again for several.
    pub fn status(mut self, status: RunStatus) -> Self {
        self.0.statuses.push(status.into());
        self
    }

    /// Only runs that started at this time or later.
    pub const fn started_from(mut self, from: Timestamp) -> Self {
        self.0.started_from = Some(from);
        self
    }

    /// Only runs that started before this time.
    pub const fn started_before(mut self, before: Timestamp) -> Self {
        self.0.started_before = Some(before);
        self
    }

    /// Only runs that pass this query, such as `WorkflowType = 'order' AND Amount > 100`. It may end
    /// with `ORDER BY`; for [`Client::count_runs_by_field`](crate::Client::count_runs_by_field) it ends
    /// with `GROUP BY`.
    pub fn query(mut self, query: impl Into<String>) -> Self {
        self.0.query = query.into();
        self
    }

    /// Only runs that follow this position in the list.
    pub const fn after(mut self, position: RunPosition) -> Self {
        self.0.after = Some((position.at, position.run));
        self
    }

    pub(crate) fn in_namespace(self, namespace: &NamespaceId) -> list::RunFilter {
        list::RunFilter { namespace: Some(namespace.clone()), ..self.0 }
    }
}
